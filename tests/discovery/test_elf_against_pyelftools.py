"""Our ELF reader answers as pyelftools does, on real libraries and on those we write ourselves."""

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.discovery.elf import ElfFile, UndefinedSymbol
from tests.discovery.conftest import DEVICE, FILESYSTEM
from tests.discovery.elf_builder import ElfBuilder

_BINDINGS = {"STB_GLOBAL", "STB_WEAK", "STB_LOOS"}
_VISIBLE = {"STV_DEFAULT", "STV_PROTECTED"}
# Of other linkers, with versions, in C and in C++.
_REAL = ("libc.so.6", "libm.so.6", "libstdc++", "_core.", "_multiarray_umath", "libgfortran")


class Oracle:
    """What pyelftools says of a library."""

    def __init__(self, path):
        with Path(path).open("rb") as stream:
            elf = ELFFile(stream)
            versions = [
                (need.name, aux.name, bool(aux["vna_flags"] & 2), aux["vna_other"])
                for need, auxes in self._versions(elf, ".gnu.version_r")
                for aux in auxes
            ]
            self.needs = [row[:3] for row in versions]
            self.definitions = {
                next(iter(auxes)).name for _, auxes in self._versions(elf, ".gnu.version_d")
            }
            self.undefined, self.exports = self._symbols(elf, {row[3]: row[1] for row in versions})
            self.dynamic = {}
            for tag in elf.get_section_by_name(".dynamic").iter_tags():
                for field in ("needed", "soname", "rpath", "runpath"):
                    if hasattr(tag, field):
                        self.dynamic.setdefault(field, []).append(getattr(tag, field))

    @staticmethod
    def _versions(elf, section):
        found = elf.get_section_by_name(section)
        return found.iter_versions() if found is not None else ()

    @staticmethod
    def _symbols(elf, versions):
        indices = elf.get_section_by_name(".gnu.version")
        undefined, exports = [], set()
        for at, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_info"]["bind"] not in _BINDINGS or not symbol.name:
                continue
            if symbol["st_shndx"] == "SHN_UNDEF":
                index = indices.get_symbol(at)["ndx"] if indices else 0
                version = versions.get(index & 0x7FFF) if isinstance(index, int) else None
                weak = symbol["st_info"]["bind"] == "STB_WEAK"
                undefined.append(UndefinedSymbol(symbol.name, weak, version))
            elif symbol["st_other"]["visibility"] in _VISIBLE:
                exports.add(symbol.name)
        return undefined, exports


def assert_same(path):
    """Compare all that our reader says of a library with the oracle."""
    oracle = Oracle(path)
    with ElfFile(str(path)) as elf:
        dynamic = elf.dynamic
        assert [dynamic.soname] == oracle.dynamic.get("soname", [None])
        assert list(dynamic.needed) == oracle.dynamic.get("needed", [])
        assert ":".join(dynamic.rpath) == "".join(oracle.dynamic.get("rpath", []))
        assert ":".join(dynamic.runpath) == "".join(oracle.dynamic.get("runpath", []))
        assert list(elf.undefined()) == oracle.undefined
        assert elf.exports() == oracle.exports
        needs = [(need.library, need.version, need.weak) for need in elf.version_needs()]
        assert needs == oracle.needs
        assert elf.version_definitions() == oracle.definitions
        for name in sorted(oracle.exports)[::7]:
            assert elf.find(name) is not None, name
        for symbol in oracle.undefined:
            if symbol.name not in oracle.exports:
                assert elf.find(symbol.name) is None, symbol.name


def test_libraries_of_this_process():
    import numpy as np  # noqa: F401  (brings libraries of other linkers into the process)

    maps = Path("/proc/self/maps").read_bytes()  # tests before may have mapped odd names
    mapped = set(re.findall(rb"/[!-~]+\.so(?:\.[0-9.]+)?$", maps, re.MULTILINE))
    paths = [path for path in map(bytes.decode, mapped) if any(name in path for name in _REAL)]

    assert any("libc.so.6" in path for path in paths)
    assert any("libstdc++" in path for path in paths)
    for path in paths:
        assert_same(path)


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_compiled_with_each_hash_table(compile_library, style):
    functions = "".join(f"void exported_{at}(void) {{}}\n" for at in range(200))
    caller = "int elsewhere(void);\nint use(void) { return elsewhere(); }\n"
    source = FILESYSTEM + DEVICE + functions + caller
    options = (f"-Wl,--hash-style={style}", "-Wl,-soname,libboth.so.3")

    assert_same(compile_library("libboth.so", source, *options))


@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_rpath_and_runpath(compile_library, tags):
    path = compile_library("libpaths.so", FILESYSTEM, f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/a:/b")

    assert_same(path)
    with ElfFile(str(path)) as elf:
        assert ("$ORIGIN/a", "/b") in {elf.dynamic.rpath, elf.dynamic.runpath}


def test_library_that_exports_nothing(compile_library):
    path = compile_library("libnone.so", "static int hidden = 1; int *unused(void); ")

    assert_same(path)
    with ElfFile(str(path)) as elf:
        assert elf.exports() == frozenset()


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_what_is_made_from_bytes(tmp_path, style):
    made = ElfBuilder(machine=8, hash_style=style)
    path = tmp_path / "libmade.so"
    path.write_bytes(made.build())

    with path.open("rb") as stream:
        segment = next(ELFFile(stream).iter_segments("PT_DYNAMIC"))
        symbols = [symbol.name for symbol in segment.iter_symbols()]
        needed = [tag.needed for tag in segment.iter_tags("DT_NEEDED")]
    with ElfFile(str(path)) as elf:
        assert elf.image.machine_number == 8
        assert list(elf.dynamic.needed) == needed == list(made.needed)
        assert elf.dynamic.soname == made.soname
        assert [symbol.name for symbol in elf.undefined()] == [*made.undefined, *made.weak]
        assert elf.exports() == set(made.exports)
        assert {*made.exports, *made.undefined, *made.weak} == set(filter(None, symbols))
        assert all(elf.find(name) for name in made.exports)
        assert elf.find("TF_SetStatus") is elf.find("no_such_symbol") is None


def test_flags_and_kinds_of_symbols(compile_library):
    constructor = "__attribute__((constructor)) static void first(void) {}\n"
    now = compile_library("libnow.so", DEVICE + constructor + "int data;", "-Wl,-z,now")
    lazy = compile_library("liblazy.so", FILESYSTEM, "-Wl,-z,lazy", "-nostdlib")

    with ElfFile(str(now)) as elf:
        assert elf.dynamic.binds_now
        assert elf.dynamic.runs_code_on_load
        assert elf.find("SE_InitPlugin").is_callable
        assert not elf.find("data").is_callable
    with ElfFile(str(lazy)) as elf:
        assert not elf.dynamic.binds_now
        assert not elf.dynamic.runs_code_on_load
