"""Folders `NAME.wheel` in searched directories: wheels that `modular-tf fetch` unpacked."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.site_folder import install

if TYPE_CHECKING:
    from pathlib import Path

    from modular_tf.discovery.search import FoundCandidates

PLUGIN = ElfBuilder().build()
LIBRARY = ElfBuilder(exports=("something",)).build()
NAME = "spam/ops/libspam_plugin.so"


def unpack(location: Path, content: bytes = PLUGIN, version: str = "1.0") -> Path:
    """Put a distribution with a plugin into a folder, with a RECORD that is right."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record = f"{NAME},sha256={digest},{len(content)}\nspam/libhelper.so,,\n"
    files = {NAME: content, "spam/libhelper.so": LIBRARY}
    install(location, "Spam_IO", version=version, files=files, record=record.encode())
    return location / NAME


def search(**paths: object) -> FoundCandidates:
    return discover(SearchPaths(**paths))  # type: ignore[arg-type]


def test_the_drop_in_directory_has_plugins_of_unpacked_wheels(tmp_path: Path) -> None:
    path = unpack(tmp_path / "spam-io.wheel")

    result = search(user_directory=str(tmp_path))

    (candidate,) = result.candidates
    assert candidate.path == str(path)
    assert candidate.source is Source.USER_DIRECTORY
    assert (candidate.name, candidate.distribution) == ("spam-io", "spam-io")
    assert candidate.origin == "spam-io 1.0"
    assert [(place.path, place.hits) for place in result.searched] == [
        (str(tmp_path), 0),
        (str(tmp_path / "spam-io.wheel"), 1),
    ]


@pytest.mark.parametrize("named", [".", "spam-io.wheel"])
@pytest.mark.parametrize("source", [Source.ARGUMENT, Source.ENVIRONMENT, Source.CONFIG])
def test_so_has_each_directory_that_is_named(tmp_path: Path, source: Source, named: str) -> None:
    path = unpack(tmp_path / "spam-io.wheel")
    place = str(tmp_path / named)

    result = search(
        arguments=(place,) if source is Source.ARGUMENT else (),
        environment={"MODULAR_TF_PLUGIN_PATH": place} if source is Source.ENVIRONMENT else {},
        config_directories=(place,) if source is Source.CONFIG else (),
    )

    assert [(c.path, c.source, c.origin) for c in result.candidates] == [
        (str(path), source, "spam-io 1.0")
    ]


@pytest.mark.parametrize(
    "folder", ["spam-io", ".modular-tf-fetch-abc", "spam-io.wheel/deeper.wheel"]
)
def test_other_folders_are_not_searched(tmp_path: Path, folder: str) -> None:
    unpack(tmp_path / folder)

    assert search(user_directory=str(tmp_path)).candidates == ()


def test_the_same_library_of_an_installed_distribution_is_its_twin(tmp_path: Path) -> None:
    site = tmp_path / "site"
    installed = unpack(site)
    fetched = unpack(tmp_path / "drop-in" / "spam-io.wheel")

    result = search(python_path=(str(site),), user_directory=str(tmp_path / "drop-in"))

    (candidate,) = result.candidates
    assert (candidate.path, candidate.source) == (str(installed), Source.DISTRIBUTION)
    assert [(twin.path, twin.source, twin.origin) for twin in candidate.twins] == [
        (str(fetched), Source.USER_DIRECTORY, "spam-io 1.0")
    ]


def test_the_first_of_them_is_the_candidate(tmp_path: Path) -> None:
    site = tmp_path / "site"
    installed = unpack(site)
    fetched = unpack(tmp_path / "named" / "spam-io.wheel")

    result = search(python_path=(str(site),), config_directories=(str(tmp_path / "named"),))

    (candidate,) = result.candidates
    assert candidate.path == str(fetched)
    assert candidate.identity == (fetched.stat().st_dev, fetched.stat().st_ino)
    assert [twin.path for twin in candidate.twins] == [str(installed)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_a_folder_of_a_stranger_stands_for_no_other_library(tmp_path: Path) -> None:
    site, strangers = tmp_path / "site", tmp_path / "strangers" / "spam-io.wheel"
    installed = unpack(site)
    theirs = unpack(strangers)
    theirs.write_bytes(PLUGIN + b"other")
    fetched = unpack(tmp_path / "drop-in" / "spam-io.wheel")
    os.chown(strangers, 4711, -1)
    paths = {"python_path": (str(site),), "user_directory": str(tmp_path / "drop-in")}

    result = search(environment={"MODULAR_TF_PLUGIN_PATH": str(strangers.parent)}, **paths)

    found = {c.path: [twin.path for twin in c.twins] for c in result.candidates}
    assert found[str(installed)] == [str(fetched)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_what_one_other_user_unpacked_and_installed_is_the_same(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "named" / "spam-io.wheel"
    installed, fetched = unpack(site), unpack(folder)
    for path in (site, folder):
        os.chown(path, 4711, -1)

    result = search(python_path=(str(site),), config_directories=(str(tmp_path / "named"),))

    (candidate,) = result.candidates
    assert [candidate.path, candidate.twins[0].path] == [str(fetched), str(installed)]


def test_an_installed_library_that_is_gone_is_no_twin(tmp_path: Path) -> None:
    site = tmp_path / "site"
    unpack(site).unlink()
    fetched = unpack(tmp_path / "drop-in" / "spam-io.wheel")

    result = search(python_path=(str(site),), user_directory=str(tmp_path / "drop-in"))

    assert [(c.path, c.twins) for c in result.candidates] == [(str(fetched), ())]


def test_another_version_is_another_candidate(tmp_path: Path) -> None:
    site = tmp_path / "site"
    installed = unpack(site, PLUGIN, "1.0")
    fetched = unpack(tmp_path / "drop-in" / "spam-io.wheel", PLUGIN + b"2", "2.0")

    result = search(python_path=(str(site),), user_directory=str(tmp_path / "drop-in"))

    assert [(c.path, c.name, c.origin) for c in result.candidates] == [
        (str(installed), "spam-io", "spam-io 1.0"),
        (str(fetched), "spam-io#2", "spam-io 2.0"),
    ]


def test_a_damaged_record_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "spam-io.wheel"
    unpack(folder)
    record = folder / "Spam_IO-1.0.dist-info" / "RECORD"
    record.unlink()
    record.mkdir()

    result = search(user_directory=str(tmp_path))

    assert result.candidates == ()
    assert "RECORD of distribution spam-io 1.0 cannot be read" in result.problems[0].message


def test_a_library_that_is_named_has_the_distribution_of_its_wheel(tmp_path: Path) -> None:
    path = unpack(tmp_path / "spam-io.wheel")

    result = search(arguments=(str(path),))

    assert [(c.name, c.distribution) for c in result.candidates] == [("spam-io", "spam-io")]
    assert result.candidates[0].origin == "argument"
