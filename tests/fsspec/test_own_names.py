"""A file that is copied or moved to itself through fsspec stays."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from modular_tf.fsspec import ModularFileSystem
from tests.filesystem.careless import careless_service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from modular_tf.service.service import PluginService


@pytest.fixture
def careless() -> Iterator[ModularFileSystem]:
    """A plugin that would lose the file."""
    with careless_service() as service:
        yield ModularFileSystem("care", service=service)


@pytest.mark.parametrize("spelling", ["f", "./f", "/f", "../{}/f"])
@pytest.mark.parametrize("operation", ["cp_file", "copy", "mv"])
def test_a_file_stays(
    careless: ModularFileSystem, tmp_path: Path, operation: str, spelling: str
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"kept")
    target = f"care://{tmp_path}/{spelling.format(tmp_path.name)}"
    getattr(careless, operation)(f"care://{file}", target)

    assert file.read_bytes() == b"kept"


@pytest.mark.parametrize("operation", ["cp_file", "mv"])
def test_what_is_not_there_is_told(
    careless: ModularFileSystem, tmp_path: Path, operation: str
) -> None:
    with pytest.raises(FileNotFoundError):
        getattr(careless, operation)(f"care://{tmp_path}/none", f"care://{tmp_path}/none")


@pytest.fixture
def tree(ram: ModularFileSystem, ram_path: str) -> str:
    """The path of a directory d with a file in it, and one below it."""
    ram.makedirs(f"{ram_path}/d/sub")
    ram.pipe(f"{ram_path}/d/f", b"kept")
    ram.pipe(f"{ram_path}/d/sub/g", b"kept too")
    return f"{ram_path}/d"


@pytest.mark.parametrize("target", ["d", "d/", "", "./d", "d/sub/.."])
def test_a_directory_that_is_moved_to_its_own_place_stays(
    ram: ModularFileSystem, tree: str, target: str
) -> None:
    before = ram.find(tree)
    ram.mv(tree, f"{tree.removesuffix('d')}{target}", recursive=True)

    assert ram.find(tree) == before


@pytest.mark.parametrize("target", ["sub", "sub/deeper", "new", "../d/new"])
@pytest.mark.parametrize("several", [False, True])
def test_a_directory_is_not_moved_into_itself(
    ram: ModularFileSystem, tree: str, target: str, several: bool
) -> None:
    before = ram.find(tree)
    source = [tree] if several else tree
    with pytest.raises(ValueError, match="lies within it"):
        ram.mv(source, f"{tree}/{target}", recursive=True)

    assert ram.find(tree) == before


@pytest.mark.parametrize("several", [False, True])
def test_a_neighbour_whose_name_goes_on_is_not_within(
    ram: ModularFileSystem, tree: str, several: bool
) -> None:
    """`d2` lies beside `d`, though its name begins with it."""
    ram.mv([tree] if several else tree, f"{tree}2", recursive=True)

    assert not ram.exists(tree)
    assert sorted(ram.cat(ram.find(f"{tree}2")).values()) == [b"kept", b"kept too"]


@pytest.mark.parametrize("target", ["", "/", "/.", "/sub/.."])
def test_one_of_several_is_not_moved_to_its_own_place(
    ram: ModularFileSystem, tree: str, target: str
) -> None:
    before = ram.find(tree)
    with pytest.raises(ValueError, match="lies within it"):
        ram.mv([tree], f"{tree}{target}", recursive=True)

    assert ram.find(tree) == before


@pytest.mark.parametrize("makes_directories", [False, True])
def test_a_target_with_a_slash_at_its_end_is_a_directory(
    service: PluginService, tree: str, makes_directories: bool
) -> None:
    ram = ModularFileSystem("ram", service=service, auto_mkdir=makes_directories)
    with nullcontext() if makes_directories else pytest.raises(FileNotFoundError):
        ram.mv(f"{tree}/f", f"{tree}/new/")

    place = f"{tree}/new/f" if makes_directories else f"{tree}/f"
    assert sorted(ram.find(tree)) == sorted([place, f"{tree}/sub/g"])


def test_the_root_is_not_moved_into_itself(ram: ModularFileSystem, tree: str) -> None:
    with pytest.raises(ValueError, match="lies within it"):
        ram.mv("ram://", f"ram://{tree}/new", recursive=True)

    assert ram.cat(f"{tree}/f") == b"kept"
