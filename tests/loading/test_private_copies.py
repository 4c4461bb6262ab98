"""Libraries that are mapped from copies stay as they are, whatever becomes of their files."""

import shutil
from pathlib import Path

import pytest

from modular_tf.discovery.linking.host_exports import REPLACED_SONAMES
from modular_tf.loading.binding import bind
from modular_tf.loading.filesystem_tables import init_filesystems
from modular_tf.native.library import address_owner


@pytest.fixture
def place(fixture_plugin, tmp_path):
    """Put a fixture plugin of some scheme into a file, in place."""

    def write(scheme):
        built = fixture_plugin("needed-none", scheme=scheme)
        with (tmp_path / "libx.so").open("wb") as stream:
            stream.write(built.read_bytes())
        return str(tmp_path / "libx.so")

    return write


def schemes(library):
    return [tables.scheme for tables in init_filesystems(library, plugin="x").entries]


def bind_copy(path, companions=()):
    return bind(path, companions, REPLACED_SONAMES, sealed=True)


def test_an_overwritten_file_is_mapped_anew_and_leaves_what_is_mapped_alone(place):
    path = place("first")
    first = bind_copy(path)
    assert schemes(first) == ["first"]
    assert address_owner(first.symbol("TF_InitPlugin")).path == path

    assert schemes(bind_copy(place("second"))) == ["second"]
    assert schemes(first) == ["first"]
    with Path(path).open("wb"):
        assert schemes(first) == ["first"]


def test_the_same_bytes_are_mapped_once(place, tmp_path):
    first = bind_copy(place("first"))
    place("second")
    again = bind_copy(place("first"))
    elsewhere = bind_copy(str(shutil.copy(tmp_path / "libx.so", tmp_path / "liby.so")))

    entries = {library.symbol("TF_InitPlugin") for library in (first, again, elsewhere)}
    assert len(entries) == 1


def test_companions_are_copied_too(fixture_plugin, tmp_path):
    built = fixture_plugin("companion", scheme="withcompanion")
    companion = tmp_path / "libfixture_companion.so"
    for file in (built, built.parent / companion.name):
        shutil.copy(file, tmp_path / file.name)
    library = bind_copy(str(tmp_path / built.name), [str(companion)])

    companion.write_bytes(b"")

    assert schemes(library) == ["withcompanion"]
