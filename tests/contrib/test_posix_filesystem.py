"""What only the disk has: links, devices, modes, places where the kernel says no."""

from __future__ import annotations

import os
import resource
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    NOT_FOUND,
    OK,
    RESOURCE_EXHAUSTED,
    UNIMPLEMENTED,
)
from tests.contrib.plugin_process import PluginProcess, installed_plugin
from tests.contrib.world import CONTENT, FILE, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contrib.world import World

FULL_DEVICE = "/dev/full"


@pytest.fixture
def disk(posix: World) -> World:
    """A populated folder."""
    posix.populate()
    return posix


def test_mtime_is_the_disk_s_own(disk: World) -> None:
    """Row 169: every nanosecond of it."""
    os.utime(disk.uri(FILE), ns=(1, 1_234_567_890_123_456_789))
    assert disk.plugin.stat(disk.uri(FILE)).value[1] == 1_234_567_890_123_456_789


def test_tree_deletion_does_not_follow_links(disk: World) -> None:
    """Row 134."""
    Path(disk.uri("full/link")).symlink_to(disk.uri("dir"))
    disk.write("dir/kept", b"kept")
    Path(disk.uri("full/dangling")).symlink_to("nowhere")
    outcome = disk.plugin.delete_recursively(disk.uri("full"))
    assert (outcome.code, outcome.value) == (OK, (0, 0))
    assert disk.read("dir/kept") == b"kept"


@pytest.mark.parametrize("name", ["link", "link/"])
def test_tree_deletion_of_a_link(disk: World, name: str) -> None:
    disk.write("dir/kept", b"kept")
    Path(disk.uri("link")).symlink_to(disk.uri("dir"))
    assert disk.plugin.delete_recursively(disk.uri(name)).code == OK
    assert disk.read("dir/kept") == b"kept"
    assert not Path(disk.uri("link")).is_symlink()


@pytest.mark.parametrize("path", ["/", "//", ".", "..", "full/.", "full/.."])
def test_tree_deletion_refuses_what_cannot_go(disk: World, path: str) -> None:
    uri = disk.uri(path) if path.startswith("full") else path
    before = disk.tree()
    outcome = disk.plugin.delete_recursively(uri)
    assert (outcome.code, outcome.value) == (FAILED_PRECONDITION, (0, 1))
    assert disk.tree() == before


def test_tree_deletion_goes_on_after_a_failure(disk: World) -> None:
    """Row 132."""
    if os.geteuid() == 0:  # who may delete everything but what the kernel makes up
        outcome = disk.plugin.delete_recursively("/proc/self/fdinfo")
        assert outcome.code not in {OK, NOT_FOUND}
        assert outcome.value[0] > 0
        assert outcome.value[1] == 1
        return
    disk.call("create_dir", "full/locked")
    disk.write("full/locked/stays", b"")
    Path(disk.uri("full/locked")).chmod(0o500)
    outcome = disk.plugin.delete_recursively(disk.uri("full"))
    Path(disk.uri("full/locked")).chmod(0o700)
    assert (outcome.code, outcome.value) == (7, (1, 2))
    assert disk.children("full") == ["locked"]


@contextmanager
def few_descriptors(disk: World) -> Iterator[None]:
    """Leave the plugin's process 40 descriptors more than it has now."""
    before = resource.prlimit(disk.plugin.pid, resource.RLIMIT_NOFILE)
    limit = (disk.plugin.descriptors() + 40, before[1])
    resource.prlimit(disk.plugin.pid, resource.RLIMIT_NOFILE, limit)
    try:
        yield
    finally:
        resource.prlimit(disk.plugin.pid, resource.RLIMIT_NOFILE, before)


def make_deep(disk: World, top: str, depth: int) -> None:
    """Make directories, one in the other, with a file in each."""
    at = os.open(disk.uri(""), os.O_PATH)
    for name in (top, *["directory"] * depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_PATH, dir_fd=at)
        os.close(at)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        at = below
    os.close(at)


def test_deep_tree(disk: World) -> None:
    """Deeper than there are descriptors, and than any path is long."""
    make_deep(disk, "deep", 600)
    with few_descriptors(disk):
        outcome = disk.plugin.delete_recursively(disk.uri("deep"))
    assert (outcome.code, outcome.value) == (OK, (0, 0))
    assert not disk.exists("deep")


def test_pattern_of_many_levels(disk: World) -> None:
    """More levels than there are descriptors."""
    make_deep(disk, "deep", 200)
    with few_descriptors(disk):
        outcome = disk.plugin.get_matching_paths(disk.uri("deep/" + "*/" * 200 + "f*"))
    assert (outcome.code, outcome.value[0]) == (OK, 1)
    assert disk.plugin.delete_recursively(disk.uri("deep")).code == OK


def test_recursive_creation_names_what_stands_in_the_way(disk: World) -> None:
    outcome = disk.call("recursively_create_dir", "full/inner/x/y/z")
    assert outcome.code == FAILED_PRECONDITION
    assert "full/inner" in outcome.message


@pytest.mark.parametrize("slot", ["new_writable_file", "new_appendable_file"])
@pytest.mark.parametrize("size", [10, 1 << 20])
@pytest.mark.parametrize("last", ["flush", "sync", "close"])
def test_full_disk_is_told(disk: World, slot: str, size: int, last: str) -> None:
    """Rows 87, 88: at the latest by close, and it stays told."""
    outcome = disk.plugin.open(slot, FULL_DEVICE)
    file = outcome.value
    appended = disk.plugin.append(file, bytes(size)).code
    assert appended == (RESOURCE_EXHAUSTED if size > 1000 else OK)
    assert disk.plugin.writer(last, file).code == RESOURCE_EXHAUSTED
    if last != "close":
        assert disk.plugin.append(file, b"more").code == RESOURCE_EXHAUSTED
        assert disk.plugin.writer("tell", file).value == -1
        assert disk.plugin.writer("close", file).code == RESOURCE_EXHAUSTED
    disk.plugin.cleanup("writer", file)


def test_failing_read_counts_minus_one(disk: World) -> None:
    """Row 64."""
    file = disk.plugin.open("new_random_access_file", "/proc/self/mem").value
    outcome = disk.plugin.read(file, 0, 16)
    disk.plugin.cleanup("reader", file)
    assert outcome.code not in {OK, 11}
    assert outcome.value == (-1, b"")
    assert "/proc/self/mem" in outcome.message


def test_rename_of_a_link_moves_the_link(disk: World) -> None:
    Path(disk.uri("link")).symlink_to("dir")
    assert disk.call("rename_file", "link", "moved").code == OK
    assert Path(disk.uri("moved")).is_symlink()


@pytest.mark.parametrize("target", ["hard", "dir/hard"])
def test_rename_to_another_link_of_the_file_removes_the_first(disk: World, target: str) -> None:
    """Where rename(2) does nothing, and leaves both."""
    path = Path(disk.uri(target))
    path.hardlink_to(disk.uri(FILE))
    Path(disk.uri("dir/third")).hardlink_to(disk.uri(FILE))
    assert disk.call("rename_file", FILE, target).code == OK
    assert not disk.exists(FILE)
    assert path.read_bytes() == CONTENT
    assert path.stat().st_nlink == 2


@pytest.mark.parametrize("target", [FILE, "alias/file"])
def test_rename_of_a_file_with_links_to_itself(disk: World, target: str) -> None:
    """Row 141, also where another path leads to the same entry."""
    Path(disk.uri("hard")).hardlink_to(disk.uri(FILE))
    Path(disk.uri("alias")).symlink_to(".")
    before = disk.children()
    assert disk.call("rename_file", FILE, target).code == OK
    assert disk.read(FILE) == CONTENT
    assert disk.children() == before


def test_rename_to_a_link_to_it_from_another_device_is_refused(disk: World) -> None:
    """A host that made up for it by copying and deleting would lose the file."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        link = Path(folder, "link")
        link.symlink_to(disk.uri(FILE))
        assert link.lstat().st_dev != Path(disk.uri(FILE)).stat().st_dev
        outcomes = [
            disk.plugin.call("rename_file", disk.uri(name), str(link)).code
            for name in (FILE, OTHER)
        ]
    assert outcomes == [FAILED_PRECONDITION, UNIMPLEMENTED]
    assert disk.read(FILE) == CONTENT


def test_rename_is_atomic_for_readers(disk: World) -> None:
    """Whoever opens the target while it is replaced finds one of the two files, whole."""
    contents = [bytes([65 + number]) * 4096 for number in range(2)]
    disk.write("target", contents[0])
    failures: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            data = Path(disk.uri("target")).read_bytes()
            if data not in contents:
                failures.append(data)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(200):
        disk.write("next", contents[number % 2])
        assert disk.call("rename_file", "next", "target").code == OK
    done.set()
    watcher.join()
    assert failures == []


def test_pipe_is_written_and_synced(disk: World) -> None:
    path = disk.uri("pipe")
    os.mkfifo(path)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(Path(path).read_bytes()))
    reader.start()
    disk.write("pipe", b"through")
    reader.join()
    assert received == [b"through"]


def test_delete_dir_of_a_mount_point_and_create_dir_of_the_top(disk: World) -> None:
    assert disk.plugin.call("delete_dir", "/proc").code == FAILED_PRECONDITION
    assert disk.plugin.call("create_dir", "/").code == ALREADY_EXISTS


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("e*", ["empty"]),
        ("f*", ["file", "full"]),
        ("fil?", ["file"]),
        ("[eo]*", ["empty", "other"]),
        ("[^eo]*", ["dir", "file", "full"]),
        ("[!a-f]*", ["other"]),
        ("*/inner", ["full/inner"]),
        ("fu*/in*", ["full/inner"]),
        ("f", []),
        ("file", ["file"]),
        ("none", []),
        ("none/*", []),
        ("file/*", []),
        ("[", []),
        ("*", ["dir", "empty", "file", "full", "other"]),
    ],
)
def test_glob(disk: World, pattern: str, names: list[str]) -> None:
    """Rows 193 to 198."""
    for root in (disk.root, f"file://{disk.root}"):
        outcome = disk.plugin.get_matching_paths(f"{root}/{pattern}")
        number, paths = outcome.value
        assert (outcome.code, number) == (OK, len(names))
        assert sorted(paths) == [f"{root}/{name}" for name in names]


def test_glob_of_special_characters(disk: World) -> None:
    """Row 196."""
    for name in ("a*b", "acb", "täst"):
        disk.write(f"dir/{name}", b"")
    for pattern, name in ((r"a\*b", "a*b"), ("a[*]b", "a*b"), ("t?st", "täst")):
        found = disk.plugin.get_matching_paths(disk.uri(f"dir/{pattern}"))
        assert found.value == (1, [disk.uri(f"dir/{name}")])


def test_file_that_cannot_be_mapped_is_not_called_missing(disk: World) -> None:
    name = "/sys/devices/system/cpu/online"
    outcome = disk.plugin.open("new_read_only_memory_region_from_file", name)
    assert (outcome.code, outcome.value) == (UNIMPLEMENTED, None)


def test_plain_paths_are_the_same_disk(disk: World) -> None:
    plain = PluginProcess("filesystem", installed_plugin("posix_filesystem"), "")
    assert plain.call("get_file_size", disk.uri(FILE)).value == len(CONTENT)
    assert plain.close() == 0
