"""The import lists in `wild_imports.toml` are those of the published binaries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from tests.fixtures.wild import WildPlugins

pytestmark = pytest.mark.wild


def imports_from_tensorflow(library: Path) -> set[str]:
    """Return the strong undefined symbols that only TensorFlow's library defines."""
    with library.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        return {
            symbol.name
            for symbol in table.iter_symbols()
            if symbol["st_shndx"] == "SHN_UNDEF"
            and symbol["st_info"]["bind"] == "STB_GLOBAL"
            and symbol.name.startswith(("TF_", "TSL_", "_ZN3tsl", "_ZN10tensorflow"))
        }


def test_the_lists_are_those_of_the_binaries(wild_plugins: WildPlugins) -> None:
    listed = tomllib.loads(Path(__file__).with_name("wild_imports.toml").read_text())

    gcs = imports_from_tensorflow(wild_plugins.gcs_library)
    assert set(listed["tensorflow-io-gcs-filesystem"]["symbols"]) == gcs
    io = imports_from_tensorflow(wild_plugins.io_library)
    assert set(listed["tensorflow-io"]["symbols"]) == io
