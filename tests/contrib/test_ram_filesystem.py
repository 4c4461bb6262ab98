"""What only the memory has: its paths, its options, its instances, and many threads at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import (
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OK,
    RESOURCE_EXHAUSTED,
    UNTOUCHED,
)
from tests.contrib.plugin_process import PluginProcess, installed_plugin
from tests.contrib.world import CONTENT, DIRECTORY, FILE, MISSING, OTHER, UNDER_FILE, World

if TYPE_CHECKING:
    from collections.abc import Iterator

INT, REAL, BUFFER = range(3)


@pytest.fixture
def memory() -> Iterator[World]:
    """A filesystem of its own, since options hold for all of it."""
    plugin = PluginProcess("filesystem", installed_plugin("ram_filesystem"), "ram")
    yield World(plugin, "ram://")
    assert plugin.close() == 0


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("ram://", "/"),
        ("ram:///", "/"),
        ("ram:////", "/"),
        ("ram://a", "/a"),
        ("ram:///a", "/a"),
        ("ram://a/./b//c/../d/", "/a/b/d"),
        ("ram://h/../../x", "/x"),
        ("/a/..", "/"),
        ("/a/b/", "/a/b"),
        ("a", "/a"),
        ("", "/"),
        ("ram://a%2e/?q#f \\é", "/a%2e/?q#f \\é"),
        ("ram://..x/...", "/..x/..."),
        ("ram://" + "n" * 4096, "/" + "n" * 4096),
    ],
)
def test_translate(ram: World, uri: str, path: str) -> None:
    """Rows 39 to 48."""
    assert ram.plugin.translate(uri) == path
    assert ram.plugin.translate(path) == path


def test_host_place_is_a_name(ram: World) -> None:
    assert ram.plugin.call("create_dir", f"{ram.root}/x").code == OK
    assert ram.plugin.call("path_exists", ram.root.replace("ram://", "ram:///") + "/x").code == OK


def test_root_stays(ram: World) -> None:
    before = ram.children()
    for slot in ("delete_file", "delete_dir"):
        assert ram.plugin.call(slot, "ram://").code == FAILED_PRECONDITION
    outcome = ram.plugin.delete_recursively("ram://")
    assert (outcome.code, outcome.value) == (FAILED_PRECONDITION, (0, 1))
    assert ram.children() == before


def test_recursive_creation_is_all_or_none(ram: World) -> None:
    """Row 118: `..` is resolved before anything is made."""
    assert ram.call("recursively_create_dir", "a/b/../c").code == OK
    assert ram.tree() == {"a": None, "a/c": None}


@pytest.mark.parametrize(
    ("row", "names", "codes"),
    [
        (160, [FILE, DIRECTORY], [OK, OK]),
        (161, [DIRECTORY, FILE, UNDER_FILE, MISSING], [OK, OK, FAILED_PRECONDITION, NOT_FOUND]),
        (163, [], []),
        (165, [FILE] * 1000, [OK] * 1000),
    ],
)
def test_paths_exist(ram: World, row: int, names: list[str], codes: list[int]) -> None:
    """Rows 160 to 165."""
    ram.populate()
    uris = [ram.uri(name) for name in names]
    every = not any(codes)
    assert ram.plugin.paths_exist(uris, ask_each=True) == (every, codes), row
    assert ram.plugin.paths_exist(uris, ask_each=False) == (every, []), row
    assert [ram.call("path_exists", name).code for name in names] == codes


def test_options_tell_what_there_is(memory: World) -> None:
    """Row 209."""
    outcome = memory.plugin.options()
    assert outcome.code == OK
    kinds = {
        name: (per_file, tag, value) for name, (_, per_file, tag, value) in outcome.value.items()
    }
    assert kinds == {
        "capacity_bytes": (0, INT, 0),
        "block_bytes": (1, INT, 64),
        "growth_factor": (1, REAL, 2.0),
        "label": (0, BUFFER, b""),
    }
    assert all(description for description, *_ in outcome.value.values())


@pytest.mark.parametrize(
    ("name", "tag", "value"),
    [
        ("capacity_bytes", INT, 123),
        ("block_bytes", INT, 4096),
        ("growth_factor", REAL, 1.5),
        ("label", BUFFER, b"a\0b"),
        ("label", BUFFER, b""),
    ],
)
def test_option_is_set_and_read_back(memory: World, name: str, tag: int, value: object) -> None:
    """Rows 210, 211, 212: the harness overwrites what it passed before it reads back."""
    assert memory.plugin.set_options([(name, tag, value)]).code == OK
    assert memory.plugin.option(name).value[name][3] == value


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (("nothing", INT, 1), NOT_FOUND),
        (("capacity_bytes", REAL, 1.0), INVALID_ARGUMENT),
        (("capacity_bytes", INT, -1), INVALID_ARGUMENT),
        (("block_bytes", INT, 0), INVALID_ARGUMENT),
        (("block_bytes", INT, 1 << 40), INVALID_ARGUMENT),
        (("growth_factor", REAL, 0.5), INVALID_ARGUMENT),
        (("growth_factor", REAL, float("nan")), INVALID_ARGUMENT),
    ],
)
def test_bad_option_changes_nothing(
    memory: World, wish: tuple[str, int, object], code: int
) -> None:
    """Row 210: not even the good options that come before it."""
    before = memory.plugin.options().value
    outcome = memory.plugin.set_options([("label", BUFFER, b"good"), wish])
    assert outcome.code == code
    assert wish[0] in outcome.message
    assert memory.plugin.options().value == before


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_option_needs_one_value(memory: World, number: int) -> None:
    outcome = memory.plugin.set_options([("capacity_bytes", INT, 5)], number=number)
    assert outcome.code == INVALID_ARGUMENT
    assert memory.plugin.option("capacity_bytes").value["capacity_bytes"][3] == 0


def test_no_options_at_all_and_an_unknown_key(memory: World) -> None:
    """Rows 210, 211."""
    assert memory.plugin.set_options([]).code == OK
    outcome = memory.plugin.option("nothing")
    assert (outcome.code, outcome.value) == (NOT_FOUND, None)


def test_label_stands_in_front_of_messages(memory: World) -> None:
    memory.plugin.set_options([("label", BUFFER, b"job 7")])
    assert memory.call("path_exists", MISSING).message.startswith("[job 7] ")


def test_capacity(memory: World) -> None:
    """Rows 87, 88: all of an append or nothing, and close tells it again."""
    memory.plugin.set_options([("capacity_bytes", INT, 10)])
    file = memory.open("new_writable_file", "new")
    assert memory.plugin.append(file, b"12345678").code == OK
    assert memory.plugin.append(file, b"901").code == RESOURCE_EXHAUSTED
    assert memory.plugin.append(file, b"9").code == RESOURCE_EXHAUSTED
    assert memory.plugin.writer("close", file).code == RESOURCE_EXHAUSTED
    memory.plugin.cleanup("writer", file)
    assert memory.read("new") == b"12345678"
    memory.write("other", b"90")


def test_capacity_counts_copies_and_open_files(memory: World) -> None:
    """Row 155: a copy that finds no room leaves its target."""
    memory.plugin.set_options([("capacity_bytes", INT, 10)])
    memory.write(FILE, b"123456")
    memory.write(OTHER, b"ab")
    assert memory.call("copy_file", FILE, OTHER).code == RESOURCE_EXHAUSTED
    assert memory.read(OTHER) == b"ab"
    reader = memory.open("new_random_access_file", FILE)
    memory.call("delete_file", FILE)
    assert memory.call("copy_file", OTHER, "copy").code == OK
    assert memory.call("copy_file", OTHER, "copy2").code == RESOURCE_EXHAUSTED
    memory.plugin.cleanup("reader", reader)
    assert memory.call("copy_file", OTHER, "copy2").code == OK


@pytest.mark.parametrize("block_bytes", [1, 65536])
@pytest.mark.parametrize("growth_factor", [1.0, 16.0])
def test_growth_options_change_no_bytes(
    memory: World, block_bytes: int, growth_factor: float
) -> None:
    options = [("block_bytes", INT, block_bytes), ("growth_factor", REAL, growth_factor)]
    assert memory.plugin.set_options(options).code == OK
    pieces = [bytes([number]) * (number * 37) for number in range(1, 60)]
    for piece in pieces:
        memory.write("new", piece, "new_appendable_file")
    assert memory.read("new") == b"".join(pieces)


def test_end_frees_everything(memory: World) -> None:
    memory.write(FILE, CONTENT)
    memory.plugin.end()
    assert memory.children() == []


def test_open_file_outlives_its_filesystem(memory: World) -> None:
    """Hosts close files first, but a late one must not fall over."""
    memory.write(FILE, CONTENT)
    reader = memory.open("new_random_access_file", FILE)
    memory.plugin.end()
    assert memory.plugin.read(reader, 0, 4).value == (4, CONTENT)
    memory.plugin.cleanup("reader", reader)


def test_tree_too_deep_for_a_stack(memory: World) -> None:
    depth = 200_000
    assert memory.call("recursively_create_dir", "deep" + "/d" * depth).code == OK
    assert memory.plugin.delete_recursively("ram://deep").code == OK
    assert memory.children() == []


def test_appenders_and_readers_of_one_file(ram: World) -> None:
    """Each read sees whole appends only, each append arrives once, regions keep what they saw."""
    ram.write("shared", b"")
    writers = [ram.open("new_appendable_file", "shared") for _ in range(3)]
    reader = ram.open("new_random_access_file", "shared")
    rounds, size = 200, 64
    jobs: list[list[tuple[object, ...]]] = [
        [("append", writer, bytes([65 + number]) * size)] * rounds
        for number, writer in enumerate(writers)
    ]
    jobs += [[("read", reader, 0, 3 * rounds * size)] * rounds] * 2
    jobs += [[("open", "new_read_only_memory_region_from_file", ram.uri("shared"))] * rounds]
    *_, first, second, regions = ram.plugin.parallel(jobs)
    final = ram.read("shared")
    assert sorted(final[i : i + size] for i in range(0, len(final), size)) == sorted(
        bytes([65 + number]) * size for number in range(3) for _ in range(rounds)
    )
    for outcome in first + second:
        assert outcome.code != UNTOUCHED
        assert outcome.value[0] % size == 0
        assert final.startswith(outcome.value[1])
    opened = [outcome.value for outcome in regions if outcome.code == OK]
    for region in opened:
        _, data = ram.plugin.region(region)
        assert len(data) % size == 0
        assert final.startswith(data)
        ram.plugin.cleanup("region", region)
    for writer in writers:
        ram.plugin.cleanup("writer", writer)
    ram.plugin.cleanup("reader", reader)


def test_names_under_fire(ram: World) -> None:
    """Threads that make, rename, copy, list and delete the same names: no crash, no odd code."""
    ram.call("create_dir", "d")
    name = ram.uri("d/a"), ram.uri("d/b")
    rounds = 300
    jobs: list[list[tuple[object, ...]]] = [
        [("call", "rename_file", *name), ("call", "rename_file", *reversed(name))] * rounds,
        [("call", "copy_file", *name), ("call", "delete_file", name[0])] * rounds,
        [("open", "new_writable_file", name[0])] * rounds,
        [("get_children", ram.uri("d")), ("call", "path_exists", name[1])] * rounds,
        [("delete_recursively", ram.uri("d")), ("call", "create_dir", ram.uri("d"))] * rounds,
    ]
    results = ram.plugin.parallel(jobs)
    codes = {outcome.code for result in results for outcome in result}
    assert codes <= {OK, NOT_FOUND, 6}
    for outcome in results[2]:
        if outcome.value is not None:
            ram.plugin.cleanup("writer", outcome.value)
    assert set(ram.children()) <= {"d"}
