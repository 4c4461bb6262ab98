"""Our ELF reader answers as pyelftools does, on libraries of several linkers."""

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.discovery.elf import ElfFile
from tests.discovery.elf_builder import ElfBuilder

# Of other linkers, with versions, in C and in C++.
_REAL = ("libc.so.6", "libm.so.6", "libstdc++", "_core.", "_multiarray_umath", "libgfortran")
_GLOBAL = ("STB_GLOBAL", "STB_WEAK", "STB_LOOS")


def answers(path):
    """Return what our reader says of a library."""
    with ElfFile(str(path)) as elf:
        dynamic = elf.dynamic
        return {
            "machine": elf.image.machine_number,
            "soname": dynamic.soname,
            "needed": dynamic.needed,
            "runpath": dynamic.runpath,
            "rpath": dynamic.rpath,
            "binds now": dynamic.binds_now,
            "runs code": dynamic.runs_code_on_load,
            "needs": [tuple(need) for need in elf.version_needs()],
            "definitions": set(elf.version_definitions()),
            "exports": set(elf.exports()),
            "undefined": [tuple(symbol) for symbol in elf.undefined()],
            "found": {name: elf.find(name).value for name in sorted(elf.exports())[:100]},
        }


def said_by_pyelftools(path):
    """Return what pyelftools says of it."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        dynamic = next(elf.iter_segments("PT_DYNAMIC"))
        tags = {tag.entry.d_tag: tag for tag in dynamic.iter_tags()}
        paths = {
            tag: tuple(getattr(tags[tag], tag[3:].lower()).split(":")) if tag in tags else ()
            for tag in ("DT_RUNPATH", "DT_RPATH")
        }
        flags, flags_1 = (
            tags[tag].entry.d_val if tag in tags else 0 for tag in ("DT_FLAGS", "DT_FLAGS_1")
        )
        symbols = list(dynamic.iter_symbols())
        needs = list(_version_needs(elf))
        versions = {number: version for _, version, _, number in needs}
        indices = elf.get_section_by_name(".gnu.version")
        exported = [symbol for symbol in symbols if _is_exported(symbol)]
        definitions = elf.get_section_by_name(".gnu.version_d")
        return {
            "machine": elf.structs.Elf_half("").parse(path.read_bytes()[18:20]),
            "soname": tags["DT_SONAME"].soname if "DT_SONAME" in tags else None,
            "needed": tuple(t.needed for t in dynamic.iter_tags() if t.entry.d_tag == "DT_NEEDED"),
            "runpath": paths["DT_RUNPATH"],
            "rpath": paths["DT_RPATH"],
            "binds now": "DT_BIND_NOW" in tags or bool(flags & 8) or bool(flags_1 & 1),
            "runs code": bool(tags.keys() & {"DT_INIT", "DT_INIT_ARRAY"}),
            "needs": needs,
            "definitions": {
                next(iter(names)).name
                for _, names in (definitions.iter_versions() if definitions else ())
            },
            "exports": {symbol.name for symbol in exported},
            "undefined": [
                (s.name, s["st_info"]["bind"] == "STB_WEAK", versions.get(_number(indices, at)))
                for at, s in enumerate(symbols)
                if s["st_shndx"] == "SHN_UNDEF" and s["st_info"]["bind"] in _GLOBAL and s.name
            ],
            "found": {
                name: next(s["st_value"] for s in exported if s.name == name)
                for name in sorted({symbol.name for symbol in exported})[:100]
            },
        }


def _version_needs(elf):
    section = elf.get_section_by_name(".gnu.version_r")
    for need, versions in section.iter_versions() if section else ():
        for version in versions:
            hidden = version["vna_other"] & 0x7FFF
            yield need.name, version.name, bool(version["vna_flags"] & 2), hidden


def _number(indices, at):
    number = indices.get_symbol(at)["ndx"] if indices else 0
    return number & 0x7FFF if isinstance(number, int) else None


def _is_exported(symbol):
    return (
        symbol["st_shndx"] != "SHN_UNDEF"
        and symbol["st_info"]["bind"] in _GLOBAL
        and symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED")
    )


def test_libraries_of_this_process():
    import numpy as np  # noqa: F401  (brings libraries of other linkers into the process)

    maps = Path("/proc/self/maps").read_bytes()  # tests before may have mapped odd names
    mapped = set(re.findall(rb" (/[ -~]+\.so(?:\.[0-9.]+)?)$", maps, re.MULTILINE))
    paths = [path for path in map(bytes.decode, mapped) if any(name in path for name in _REAL)]

    assert any("libc.so.6" in path for path in paths)
    assert any("libstdc++" in path for path in paths)
    for path in paths:
        assert answers(path) == said_by_pyelftools(Path(path)), path


@pytest.mark.parametrize("hash_style", ["gnu", "sysv", "both"])
def test_each_kind_of_hash_table(hash_style, tmp_path):
    path = tmp_path / "libmade.so"
    builder = ElfBuilder(hash_style=hash_style, paths={"rpath": "$ORIGIN/a:/b", "runpath": "/c"})
    path.write_bytes(builder.build())

    assert answers(path) == said_by_pyelftools(path)
