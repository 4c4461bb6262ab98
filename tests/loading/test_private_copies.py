"""Libraries that are mapped from copies stay as they are, whatever becomes of their files."""

from __future__ import annotations

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

    def write(scheme, variant="needed-none", name="libx.so"):
        built = fixture_plugin(variant, scheme=scheme)
        with (tmp_path / name).open("wb") as stream:
            stream.write(built.read_bytes())
        return str(tmp_path / name)

    return write


def schemes(library):
    return [tables.scheme for tables in init_filesystems(library, plugin="x").entries]


def bind_copy(path, companions=()):
    return bind(path, companions, REPLACED_SONAMES, sealed=True)


def test_a_file_that_is_overwritten_leaves_what_is_mapped_alone(place):
    path = place("first")
    library = bind_copy(path)
    assert schemes(library) == ["first"]

    place("second")

    assert schemes(library) == ["first"]
    with Path(path).open("wb"):
        assert schemes(library) == ["first"]


def test_an_overwritten_file_is_mapped_anew(place):
    first = bind_copy(place("first"))
    second = bind_copy(place("second"))

    assert schemes(second) == ["second"]
    assert schemes(first) == ["first"]


def test_the_same_bytes_are_mapped_once(place, tmp_path):
    first = bind_copy(place("first"))
    place("second")
    again = bind_copy(place("first"))
    shutil.copy(tmp_path / "libx.so", tmp_path / "liby.so")
    elsewhere = bind_copy(str(tmp_path / "liby.so"))

    assert first.symbol("TF_InitPlugin") == again.symbol("TF_InitPlugin")
    assert first.symbol("TF_InitPlugin") == elsewhere.symbol("TF_InitPlugin")


def test_what_is_mapped_is_shown_by_the_name_of_its_file(place):
    path = place("first")
    owner = address_owner(bind_copy(path).symbol("TF_InitPlugin"))

    assert owner is not None
    assert owner.path == path


def test_companions_are_copied_too(fixture_plugin, tmp_path):
    built = fixture_plugin("companion", scheme="withcompanion")
    for file in (built, built.parent / "libfixture_companion.so"):
        shutil.copy(file, tmp_path / file.name)
    companion = tmp_path / "libfixture_companion.so"
    library = bind_copy(str(tmp_path / built.name), [str(companion)])

    companion.write_bytes(b"")

    assert schemes(library) == ["withcompanion"]
