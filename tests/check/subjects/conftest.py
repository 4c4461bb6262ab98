"""Filesystems of the fixture plugins, raw and through the host; plugins that misuse the heap."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.filesystem.by_slots import open_raw
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from modular_tf.loading.binding import map_file
from modular_tf.loading.filesystem_tables import init_filesystems
from tests.check.building import changed_ram_plugin
from tests.fixtures.compiler import compile_object, link_library

_FOLDER = Path(__file__).parent
ROOT = "fixture://host"
FILE = f"{ROOT}/file"


def _with_a_file(filesystem):
    """Write a file of five bytes, where that is possible."""
    if filesystem.has("append"):
        writer = filesystem.new_writable_file(FILE).value
        writer.append(b"hello")
        writer.close()
        writer.cleanup()
    return filesystem


@pytest.fixture
def fixture_tables(fixture_plugin):
    """Return the first scheme's tables of a variant, loaded into this process."""

    def load(variant="good"):
        library = map_file(str(fixture_plugin(variant)), ())
        return init_filesystems(library, plugin=variant).entries[0]

    return load


@pytest.fixture
def raw_filesystem(fixture_tables):
    opened = []

    def open_variant(variant="good"):
        opened.append(open_raw(fixture_tables(variant)))
        return _with_a_file(opened[-1])

    yield open_variant
    for made in opened:
        made.close_left_open()
        made.cleanup()


@pytest.fixture
def host_filesystem(fixture_plugin, tmp_path):
    """Return the filesystem of a variant by way of a service, with a file in it."""
    opened = []

    def open_variant(variant="good"):
        target = {"scheme": "fixture", "scratch": str(tmp_path)}
        path = str(fixture_plugin(variant))
        opened.append(FilesystemSession(Target(path, "filesystem", Pass.HOST, **target)))
        return _with_a_file(opened[-1].access)

    yield open_variant
    for session in opened:
        session.close()


@pytest.fixture(params=["raw", "host"])
def filesystem_of(request):
    """Return the filesystem of a variant in each of the two ways."""
    return request.getfixturevalue(f"{request.param}_filesystem")


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
