"""The host runtime offers what was reviewed, and its file is what the loader relies on."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import modular_tf
from tests.host_runtime.conftest import RUNTIME

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


HERE = Path(__file__).parent
HEADERS = Path(modular_tf.__file__).parent / "include" / "modular_tf"
DEFINED_BY_PLUGINS = {"TF_InitPlugin", "SE_InitPlugin", "TF_InitKernel"}
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux.*)\.so.*")


@pytest.fixture(scope="module")
def elf():
    with RUNTIME.open("rb") as stream:
        yield ELFFile(stream)


def reviewed():
    lines = (HERE / "exported_symbols.txt").read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def reviewed_names():
    return {line.split("@")[0] for line in reviewed()}


def defined_symbols(elf):
    """Return name@version and the entry of each exported symbol."""
    versions = elf.get_section_by_name(".gnu.version")
    nodes = {
        definition["vd_ndx"]: next(names).name
        for definition, names in elf.get_section_by_name(".gnu.version_d").iter_versions()
    }
    return [
        (f"{symbol.name}@{nodes[versions.get_symbol(index)['ndx']]}", symbol)
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
        if symbol["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS")
    ]


def dynamic_tags(elf, tag):
    return list(elf.get_section_by_name(".dynamic").iter_tags(tag))


def test_exactly_the_reviewed_symbols_are_exported(elf):
    assert reviewed() == {name for name, _ in defined_symbols(elf)}
    bindings = {symbol["st_info"]["bind"] for _, symbol in defined_symbols(elf)}
    assert bindings == {"STB_GLOBAL"}, "none is shared with other libraries by force"


def test_every_function_of_the_headers_is_exported():
    declared = {
        name
        for header in HEADERS.glob("*.h")
        for name in re.findall(
            r"^TF_CAPI_EXPORT extern [^(]*?(\w+)\(", header.read_text(), re.MULTILINE
        )
    }

    assert len(declared) == 8 + 23 + 3 + 3 + 130
    assert declared - DEFINED_BY_PLUGINS <= reviewed_names()


def listed_imports():
    return {
        name: set(plugin["symbols"])
        for name, plugin in tomllib.loads((HERE / "wild_imports.toml").read_text()).items()
    }


def test_every_plugin_in_the_wild_finds_its_imports():
    assert [len(symbols) for symbols in listed_imports().values()] == [8, 27, 2]
    for name, symbols in listed_imports().items():
        assert symbols <= reviewed_names(), name


@pytest.mark.wild
def test_the_lists_of_imports_are_those_of_the_binaries(wild_plugins):
    for name, library in (
        ("tensorflow-io-gcs-filesystem", wild_plugins.gcs_library),
        ("tensorflow-io", wild_plugins.io_library),
    ):
        with library.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".dynsym")
            imports = {
                symbol.name
                for symbol in table.iter_symbols()
                if symbol["st_shndx"] == "SHN_UNDEF"
                and symbol["st_info"]["bind"] == "STB_GLOBAL"
                and symbol.name.startswith(("TF_", "TSL_", "_ZN3tsl", "_ZN10tensorflow"))
            }
        assert listed_imports()[name] == imports


def test_the_file_is_what_the_loader_relies_on(elf):
    assert not RUNTIME.is_symlink()
    assert [tag.soname for tag in dynamic_tags(elf, "DT_SONAME")] == [RUNTIME.name]
    needed = [tag.needed for tag in dynamic_tags(elf, "DT_NEEDED")]
    assert [name for name in needed if not SYSTEM_LIBRARIES.fullmatch(name)] == []
    assert dynamic_tags(elf, "DT_RPATH") + dynamic_tags(elf, "DT_RUNPATH") == []
    (flags,) = dynamic_tags(elf, "DT_FLAGS_1")
    never_unmapped = 0x8
    assert flags["d_val"] & never_unmapped
