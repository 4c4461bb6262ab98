"""Folders `NAME.wheel` in searched directories: wheels that `modular-tf fetch` unpacked."""

import os

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install
from tests.fixtures.wheels import record_row

PLUGIN = ElfBuilder().build()
LIBRARY = ElfBuilder(exports=("something",)).build()
NAME = "spam/ops/libspam_plugin.so"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")


def unpack(location, content=PLUGIN, version="1.0"):
    """Put a distribution with a plugin into a folder, with a RECORD that is right."""
    record = f"{record_row(NAME, content)}\nspam/libhelper.so,,\n"
    files = {NAME: content, "spam/libhelper.so": LIBRARY}
    install(location, "Spam_IO", version=version, files=files, record=record.encode())
    return location / NAME


def search(**paths):
    return discover(SearchPaths(**paths))


@pytest.fixture
def site(tmp_path):
    return tmp_path / "site"


@pytest.fixture
def drop_in(tmp_path):
    return tmp_path / "drop-in"


@pytest.mark.parametrize("named", [".", "spam-io.wheel", f"spam-io.wheel/{NAME}"])
def test_so_has_each_directory_or_library_that_is_named(tmp_path, named):
    path = unpack(tmp_path / "spam-io.wheel")

    (candidate,) = search(arguments=(str(tmp_path / named),)).candidates

    assert (candidate.path, candidate.source) == (str(path), Source.ARGUMENT)
    assert (candidate.name, candidate.distribution) == ("spam-io", "spam-io")
    assert (candidate.origin == "spam-io 1.0") is (named != f"spam-io.wheel/{NAME}")


@pytest.mark.parametrize(
    "folder", ["spam-io", ".modular-tf-fetch-abc", "spam-io.wheel/deeper.wheel"]
)
def test_other_folders_are_not_searched(tmp_path, folder):
    unpack(tmp_path / folder)

    assert search(user_directory=str(tmp_path)).candidates == ()


def test_the_same_library_of_an_installed_distribution_is_its_twin(site, drop_in):
    installed, fetched = unpack(site), unpack(drop_in / "spam-io.wheel")

    (candidate,) = search(python_path=(str(site),), user_directory=str(drop_in)).candidates
    assert (candidate.path, candidate.source) == (str(installed), Source.DISTRIBUTION)
    assert [(twin.path, twin.source, twin.origin) for twin in candidate.twins] == [
        (str(fetched), Source.USER_DIRECTORY, "spam-io 1.0")
    ]

    # The first of them is the candidate.
    (candidate,) = search(python_path=(str(site),), config_directories=(str(drop_in),)).candidates
    assert candidate.path == str(fetched)
    assert candidate.identity == (fetched.stat().st_dev, fetched.stat().st_ino)
    assert [twin.path for twin in candidate.twins] == [str(installed)]

    # One that is gone is none.
    installed.unlink()
    (candidate,) = search(python_path=(str(site),), user_directory=str(drop_in)).candidates
    assert (candidate.path, candidate.twins) == (str(fetched), ())


@needs_root
def test_a_folder_of_a_stranger_stands_for_no_other_library(site, drop_in, tmp_path):
    strangers = tmp_path / "strangers" / "spam-io.wheel"
    installed, theirs = unpack(site), unpack(strangers)
    theirs.write_bytes(PLUGIN + b"other")
    fetched = unpack(drop_in / "spam-io.wheel")
    os.chown(strangers, 4711, -1)

    variables = {"MODULAR_TF_PLUGIN_PATH": str(strangers.parent)}
    result = search(python_path=(str(site),), user_directory=str(drop_in), environment=variables)

    twins = {found.path: [twin.path for twin in found.twins] for found in result.candidates}
    assert twins[str(installed)] == [str(fetched)]


def test_another_version_is_another_candidate(site, drop_in):
    installed = unpack(site, PLUGIN, "1.0")
    fetched = unpack(drop_in / "spam-io.wheel", PLUGIN + b"2", "2.0")

    result = search(python_path=(str(site),), user_directory=str(drop_in))

    assert [(c.path, c.name, c.origin) for c in result.candidates] == [
        (str(installed), "spam-io", "spam-io 1.0"),
        (str(fetched), "spam-io#2", "spam-io 2.0"),
    ]
