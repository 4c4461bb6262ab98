"""What only the memory has: its paths, its instances, and many threads at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import FAILED_PRECONDITION, NOT_FOUND, OK, UNTOUCHED
from tests.contrib.plugin_process import PluginProcess, installed_plugin
from tests.contrib.world import CONTENT, DIRECTORY, FILE, MISSING, UNDER_FILE, World

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def memory() -> Iterator[World]:
    """A filesystem of its own, which is empty."""
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


def test_growth_changes_no_bytes(memory: World) -> None:
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
