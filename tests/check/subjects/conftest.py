"""Filesystems of the fixture plugins by their slots; plugins that misuse the heap."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.filesystem.by_slots import open_raw
from modular_tf.loading.binding import map_file
from modular_tf.loading.filesystem_tables import init_filesystems
from tests.check.building import changed_ram_plugin
from tests.fixtures.compiler import compile_object, link_library

_FOLDER = Path(__file__).parent
ROOT = "fixture://host"
FILE = f"{ROOT}/file"


@pytest.fixture
def raw_filesystem(fixture_plugin):
    """Return the filesystem of a variant, by its slots, with a file in it where that can be."""
    opened = []

    def open_variant(variant="good"):
        library = map_file(str(fixture_plugin(variant)), ())
        opened.append(open_raw(init_filesystems(library, plugin=variant).entries[0]))
        if opened[-1].has("append"):
            writer = opened[-1].new_writable_file(FILE).value
            writer.append(b"hello")
            writer.close()
            writer.cleanup()
        return opened[-1]

    yield open_variant
    for made in opened:
        made.close_left_open()
        made.cleanup()


@pytest.fixture(scope="session")
def heap_plugin():
    """Build the plugin in memory that misuses the heap as FIXTURE_MISUSE names it."""
    return _heap_plugin("heap_plugin")


@pytest.fixture(scope="session")
def sanitized_heap_plugin():
    """Build the same with AddressSanitizer."""
    return _heap_plugin("sanitized_heap_plugin", "-fsanitize=address")


def _heap_plugin(name, *options):
    objects = [compile_object(_FOLDER / "heap_plugin.cc", options=options)]
    return changed_ram_plugin(name, "ram", objects, options)


@pytest.fixture(scope="session")
def heap_misuse():
    objects = [compile_object(_FOLDER / "heap_misuse.cc")]
    return link_library("libheap_misuse.so", objects, ["-lpthread"], cxx=True)
