"""A file that is copied or moved to itself through fsspec stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.fsspec import ModularFileSystem
from tests.filesystem.careless import careless_service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
