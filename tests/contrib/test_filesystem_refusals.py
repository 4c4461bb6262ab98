"""The catalogue's failing rows: the code, a message that names the path, and nothing changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    NOT_FOUND,
)
from tests.contrib.world import (
    DIRECTORY,
    EMPTY,
    FILE,
    FULL,
    MISSING,
    OTHER,
    UNDER_FILE,
    UNDER_MISSING,
)

if TYPE_CHECKING:
    from tests.contrib.world import World

OPENS = [
    (51, "new_random_access_file", MISSING, NOT_FOUND),
    (52, "new_random_access_file", UNDER_MISSING, NOT_FOUND),
    (53, "new_random_access_file", DIRECTORY, FAILED_PRECONDITION),
    (54, "new_random_access_file", UNDER_FILE, FAILED_PRECONDITION),
    (71, "new_writable_file", UNDER_MISSING, NOT_FOUND),
    (72, "new_writable_file", DIRECTORY, FAILED_PRECONDITION),
    (73, "new_writable_file", UNDER_FILE, FAILED_PRECONDITION),
    (95, "new_appendable_file", UNDER_MISSING, NOT_FOUND),
    (96, "new_appendable_file", DIRECTORY, FAILED_PRECONDITION),
    (97, "new_appendable_file", UNDER_FILE, FAILED_PRECONDITION),
    (100, "new_read_only_memory_region_from_file", EMPTY, INVALID_ARGUMENT),
    (101, "new_read_only_memory_region_from_file", MISSING, NOT_FOUND),
    (101, "new_read_only_memory_region_from_file", UNDER_MISSING, NOT_FOUND),
    (102, "new_read_only_memory_region_from_file", DIRECTORY, FAILED_PRECONDITION),
    (102, "new_read_only_memory_region_from_file", UNDER_FILE, FAILED_PRECONDITION),
]

CALLS = [
    (107, "create_dir", (UNDER_MISSING,), NOT_FOUND),
    (108, "create_dir", (DIRECTORY,), ALREADY_EXISTS),
    (109, "create_dir", (FILE,), ALREADY_EXISTS),
    (110, "create_dir", (UNDER_FILE,), FAILED_PRECONDITION),
    (111, "create_dir", ("",), ALREADY_EXISTS),
    (115, "recursively_create_dir", (FILE,), FAILED_PRECONDITION),
    (116, "recursively_create_dir", (UNDER_FILE,), FAILED_PRECONDITION),
    (116, "recursively_create_dir", ("full/inner/x/y",), FAILED_PRECONDITION),
    (121, "delete_file", (MISSING,), NOT_FOUND),
    (121, "delete_file", (UNDER_MISSING,), NOT_FOUND),
    (122, "delete_file", (DIRECTORY,), FAILED_PRECONDITION),
    (123, "delete_file", (UNDER_FILE,), FAILED_PRECONDITION),
    (125, "delete_dir", (MISSING,), NOT_FOUND),
    (126, "delete_dir", (FULL,), FAILED_PRECONDITION),
    (127, "delete_dir", (FILE,), FAILED_PRECONDITION),
    (127, "delete_dir", (UNDER_FILE,), FAILED_PRECONDITION),
    (137, "rename_file", (MISSING, "new"), NOT_FOUND),
    (138, "rename_file", (FILE, UNDER_MISSING), NOT_FOUND),
    (139, "rename_file", (DIRECTORY, "new"), FAILED_PRECONDITION),
    (139, "rename_file", (DIRECTORY, FILE), FAILED_PRECONDITION),
    (139, "rename_file", (FILE, DIRECTORY), FAILED_PRECONDITION),
    (140, "rename_file", (UNDER_FILE, "new"), FAILED_PRECONDITION),
    (140, "rename_file", (OTHER, UNDER_FILE), FAILED_PRECONDITION),
    (146, "copy_file", (MISSING, "new"), NOT_FOUND),
    (147, "copy_file", (DIRECTORY, "new"), FAILED_PRECONDITION),
    (148, "copy_file", (FILE, DIRECTORY), FAILED_PRECONDITION),
    (149, "copy_file", (UNDER_FILE, "new"), FAILED_PRECONDITION),
    (149, "copy_file", (OTHER, UNDER_FILE), FAILED_PRECONDITION),
    (150, "copy_file", (FILE, UNDER_MISSING), NOT_FOUND),
    (157, "path_exists", (MISSING,), NOT_FOUND),
    (157, "path_exists", (UNDER_MISSING,), NOT_FOUND),
    (158, "path_exists", (UNDER_FILE,), FAILED_PRECONDITION),
    (159, "path_exists", ("fil",), NOT_FOUND),
    (172, "is_directory", (FILE,), FAILED_PRECONDITION),
    (173, "is_directory", (MISSING,), NOT_FOUND),
    (173, "is_directory", (UNDER_FILE,), FAILED_PRECONDITION),
    (176, "get_file_size", (DIRECTORY,), FAILED_PRECONDITION),
    (177, "get_file_size", (MISSING,), NOT_FOUND),
    (177, "get_file_size", (UNDER_FILE,), FAILED_PRECONDITION),
]


@pytest.mark.parametrize(("row", "slot", "name", "code"), OPENS)
def test_open_refused(world: World, row: int, slot: str, name: str, code: int) -> None:
    before = world.tree()
    outcome = world.plugin.open(slot, world.uri(name))
    assert (outcome.code, outcome.value) == (code, None), (row, outcome)
    assert name in outcome.message
    assert world.tree() == before


@pytest.mark.parametrize(("row", "slot", "names", "code"), CALLS)
def test_call_refused(world: World, row: int, slot: str, names: tuple[str, ...], code: int) -> None:
    before = world.tree()
    outcome = world.call(slot, *names)
    assert outcome.code == code, (row, outcome)
    assert outcome.value in {None, False, -1}
    assert any(name.split("/")[0] in outcome.message for name in names)
    assert world.tree() == before


@pytest.mark.parametrize(
    ("row", "name", "code"),
    [
        (168, MISSING, NOT_FOUND),
        (168, UNDER_FILE, FAILED_PRECONDITION),
        (168, UNDER_MISSING, NOT_FOUND),
    ],
)
def test_failing_stat_leaves_the_output_alone(world: World, row: int, name: str, code: int) -> None:
    outcome = world.plugin.stat(world.uri(name))
    assert (outcome.code, outcome.value) == (code, (-7, -7, 7)), row


@pytest.mark.parametrize(
    ("row", "name", "code"),
    [
        (181, FILE, FAILED_PRECONDITION),
        (182, MISSING, NOT_FOUND),
        (182, UNDER_MISSING, NOT_FOUND),
        (183, UNDER_FILE, FAILED_PRECONDITION),
    ],
)
def test_failing_list_counts_minus_one(world: World, row: int, name: str, code: int) -> None:
    outcome = world.plugin.get_children(world.uri(name))
    assert (outcome.code, outcome.value) == (code, (-1, [])), row


@pytest.mark.parametrize(
    ("row", "name", "code"),
    [(129, MISSING, NOT_FOUND), (131, UNDER_FILE, FAILED_PRECONDITION)],
)
def test_tree_deletion_that_cannot_start(world: World, row: int, name: str, code: int) -> None:
    outcome = world.plugin.delete_recursively(world.uri(name))
    assert (outcome.code, outcome.value) == (code, (0, 1)), row
