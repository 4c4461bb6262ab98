"""Operations on names that succeed, and what they leave behind. Row numbers: the catalogue's."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import FAILED_PRECONDITION, NOT_FOUND, OK
from tests.contrib.world import (
    CONTENT,
    DIRECTORY,
    EMPTY,
    FILE,
    FULL,
    MISSING,
    OTHER,
    UNDER_FILE,
)

if TYPE_CHECKING:
    from tests.contrib.world import World

ODD_NAMES = [".hidden", "a b", "täst", "*?[x]", "a\\b", "%2e", "..x", "new\nline"]


def test_create_dir(world: World) -> None:
    """Row 106."""
    assert world.call("create_dir", "new").code == OK
    assert world.children("new") == []


@pytest.mark.parametrize(
    ("row", "name"), [(112, "a/b/c/d"), (114, "dir/b/c"), (118, "a//b/"), (113, DIRECTORY)]
)
def test_create_tree_twice(world: World, row: int, name: str) -> None:
    for _ in range(2):
        assert world.call("recursively_create_dir", name).code == OK, row
    parts = [part for part in name.split("/") if part]
    for depth in range(len(parts)):
        assert world.call("is_directory", "/".join(parts[: depth + 1])).value


def test_create_tree_of_the_root(world: World) -> None:
    """Row 119."""
    assert world.call("recursively_create_dir", "").code == OK


def test_create_tree_from_eight_threads(world: World) -> None:
    """Row 119."""
    uri = world.uri("a/b/c/d/e")
    results = world.plugin.parallel([[("call", "recursively_create_dir", uri)]] * 8)
    assert [result[0].code for result in results] == [OK] * 8
    assert world.children("a/b/c/d/e") == []


def test_delete_file_twice(world: World) -> None:
    """Row 120."""
    assert [world.call("delete_file", FILE).code for _ in range(2)] == [OK, NOT_FOUND]
    assert not world.exists(FILE)


def test_delete_dir_twice(world: World) -> None:
    """Row 124."""
    assert [world.call("delete_dir", DIRECTORY).code for _ in range(2)] == [OK, NOT_FOUND]


def test_delete_tree(world: World) -> None:
    """Rows 128, 133."""
    world.call("recursively_create_dir", "full/a/b")
    for folder in ("full", "full/a", "full/a/b"):
        for name in ODD_NAMES:
            world.write(f"{folder}/{name}", b"x")
    before = world.tree()
    outcome = world.plugin.delete_recursively(world.uri(FULL))
    assert (outcome.code, outcome.value) == (OK, (0, 0))
    assert world.tree() == {k: v for k, v in before.items() if not k.startswith(FULL)}


@pytest.mark.parametrize(("row", "name"), [(128, DIRECTORY), (130, FILE), (130, EMPTY)])
def test_delete_tree_without_depth(world: World, row: int, name: str) -> None:
    outcome = world.plugin.delete_recursively(world.uri(name))
    assert (outcome.code, outcome.value) == (OK, (0, 0)), row
    assert not world.exists(name)


@pytest.mark.parametrize(
    ("row", "target"), [(135, "new"), (136, OTHER), (142, "full/new"), (136, "full/inner")]
)
def test_rename(world: World, row: int, target: str) -> None:
    assert world.call("rename_file", FILE, target).code == OK, row
    assert not world.exists(FILE)
    assert world.read(target) == CONTENT


@pytest.mark.parametrize(("row", "slot"), [(141, "rename_file"), (152, "copy_file")])
def test_onto_itself(world: World, row: int, slot: str) -> None:
    before = world.tree()
    assert world.call(slot, FILE, FILE).code == OK, row
    assert world.call(slot, FILE, "dir/../file").code == OK, row
    assert world.tree() == before


@pytest.mark.parametrize(
    ("row", "source", "target"),
    [(144, FILE, "new"), (145, FILE, OTHER), (151, EMPTY, "new"), (151, EMPTY, FILE)],
)
def test_copy(world: World, row: int, source: str, target: str) -> None:
    before = world.tree()
    assert world.call("copy_file", source, target).code == OK, row
    assert world.tree() == before | {target: before[source]}


def test_copy_of_a_big_file(world: World) -> None:
    """Row 153; a copy stays as it is when its source grows, and the other way round."""
    data = random.Random(2).randbytes(5 << 20)
    world.write("big", data)
    assert world.call("copy_file", "big", "copy").code == OK
    world.write("big", b"source", "new_appendable_file")
    world.write("copy", b"copy", "new_appendable_file")
    assert world.read("big") == data + b"source"
    assert world.read("copy") == data + b"copy"


@pytest.mark.parametrize("name", [FILE, DIRECTORY, "", FULL])
def test_exists(world: World, name: str) -> None:
    """Row 156."""
    assert world.call("path_exists", name).code == OK


@pytest.mark.parametrize("name", [FILE, EMPTY])
def test_stat_of_files(world: World, name: str) -> None:
    """Rows 166, 169, 175, 178."""
    outcome = world.plugin.stat(world.uri(name))
    length, mtime_nsec, is_directory = outcome.value
    assert (outcome.code, length, is_directory) == (OK, len(world.read(name)), 0)
    assert abs(mtime_nsec - time.time_ns()) < 3600 * 10**9
    assert mtime_nsec % 10**6 != 0 or world.plugin.stat(world.uri(OTHER)).value[1] % 10**6 != 0
    assert world.call("get_file_size", name).value == length


def test_stat_of_directories(world: World) -> None:
    """Rows 167, 171."""
    outcome = world.plugin.stat(world.uri(DIRECTORY))
    assert (outcome.code, outcome.value[2]) == (OK, 1)
    assert world.call("is_directory", DIRECTORY) == (OK, "", True)


def test_stat_sees_an_append(world: World) -> None:
    """Row 170."""
    world.write(FILE, b"more", "new_appendable_file")
    assert world.plugin.stat(world.uri(FILE)).value[0] == len(CONTENT) + 4


def test_children(world: World) -> None:
    """Rows 179, 180, 187."""
    assert world.children() == sorted([FILE, EMPTY, DIRECTORY, FULL, OTHER])
    assert world.children(DIRECTORY) == []
    assert world.children(FULL) == ["inner"]


def test_children_with_odd_names(world: World) -> None:
    """Rows 186, 188, 190."""
    for name in ODD_NAMES:
        world.write(f"dir/{name}", name.encode())
    assert world.children("dir/") == sorted(ODD_NAMES)
    for name in ODD_NAMES:
        assert world.read(f"dir/{name}") == name.encode()


def test_many_children_from_eight_threads(world: World) -> None:
    """Rows 189, 192."""
    names = {f"name{number:05}" for number in range(5000)}
    jobs = [
        [("call", "create_dir", world.uri(f"dir/{name}")) for name in sorted(names)[part::2]]
        for part in range(2)
    ]
    world.plugin.parallel(jobs)
    listings = world.plugin.parallel([[("get_children", world.uri(DIRECTORY))]] * 8)
    for (outcome,) in listings:
        assert (outcome.value[0], set(outcome.value[1])) == (5000, names)


def test_names_that_are_prefixes(world: World) -> None:
    """Row 159."""
    world.write("filefile", b"")
    world.call("delete_file", "filefile")
    assert world.exists(FILE)
    assert not world.exists("filefile")


def test_under_file_and_missing_differ(world: World) -> None:
    """Rows 157, 158."""
    assert world.call("path_exists", UNDER_FILE).code == FAILED_PRECONDITION
    assert world.call("path_exists", f"{MISSING}/{UNDER_FILE}").code == NOT_FOUND


def test_message_names_label_free_path(world: World) -> None:
    """Row 37."""
    message = world.call("path_exists", MISSING).message
    assert message.startswith(world.plugin.translate(world.uri(MISSING)) + "; ")
