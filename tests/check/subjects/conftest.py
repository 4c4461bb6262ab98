"""Raw filesystems of the fixture plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.filesystem.by_slots import SlotFilesystem, open_raw
from modular_tf.loading.binding import map_file
from modular_tf.loading.filesystem_tables import init_filesystems
from tests.fixtures.compiler import compile_object, link_library

_FOLDER = Path(__file__).parent
_REFERENCE = _FOLDER.parents[2] / "contrib" / "ram_filesystem"
ROOT = "fixture://host"
FILE = f"{ROOT}/file"


@pytest.fixture
def fixture_tables(fixture_plugin):
    """Return the first scheme's tables of a variant, loaded into this process."""

    def load(variant="good"):
        library = map_file(str(fixture_plugin(variant)), ())
        return init_filesystems(library, plugin=variant).entries[0]

    return load


@pytest.fixture
def raw_filesystem(fixture_tables):
    """Return the raw filesystem of a variant, initialised, with a file of five bytes in it."""
    opened: list[SlotFilesystem] = []

    def open_variant(variant="good"):
        made = open_raw(fixture_tables(variant))
        opened.append(made)
        if made.has("append"):
            writer = made.new_writable_file(FILE).value
            writer.append(b"hello")
            writer.close()
            writer.cleanup()
        return made

    yield open_variant
    for made in opened:
        made.close_left_open()
        made.cleanup()


@pytest.fixture(scope="session")
def heap_plugin():
    """Build the plugin in memory that misuses the heap as FIXTURE_MISUSE says."""
    return _heap_plugin("libheap_plugin.so")


@pytest.fixture(scope="session")
def sanitized_heap_plugin():
    """Build the same with AddressSanitizer."""
    return _heap_plugin("libsanitized_heap_plugin.so", "-fsanitize=address")


def _heap_plugin(name, *options):
    sources = _REFERENCE / "src"
    renamed = ("TF_InitPlugin=reference_init_plugin", 'MTF_RAM_SCHEME="ram"')
    objects = [compile_object(source, renamed) for source in sorted(sources.glob("*.c*"))]
    objects.append(compile_object(_FOLDER / "heap_plugin.cc", options=options))
    exports = f"-Wl,--version-script={sources / 'exports.map'}"
    return link_library(name, objects, ["-lpthread", exports, *options], cxx=True)
