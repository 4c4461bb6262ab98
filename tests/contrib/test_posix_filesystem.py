"""What only the disk has: links, devices, modes, places where the kernel refuses.

What every filesystem has to do is the conformance kit's to try (tests/check).
"""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)
from tests.contrib.disk import CONTENT, FILE, OTHER, OTHER_CONTENT


def test_the_time_of_a_change_has_every_nanosecond(disk):
    os.utime(disk / FILE, ns=(1, 1_234_567_890_123_456_789))
    assert disk.call("stat", FILE).mtime_nsec == 1_234_567_890_123_456_789


def test_a_time_beyond_64_bits_of_nanoseconds_is_the_latest_that_they_hold(disk):
    os.utime(disk / FILE, (10_000_000_000, 10_000_000_000))  # in 2286, where the disk keeps that
    kept = (disk / FILE).stat().st_mtime_ns
    assert disk.call("stat", FILE).mtime_nsec == min(kept, 2**63 - 1)


# ---- deletions ----


@pytest.mark.parametrize("target", ["dir", "nowhere"])
def test_the_deletion_of_a_link_deletes_nothing_behind_it(disk, target):
    (disk / "dir/stays").touch()
    for link in ("link", "full/link"):
        (disk / link).symlink_to(disk / target)
    disk.call("delete_recursively", "link")
    disk.call("delete_recursively", "full")
    assert (disk / "dir/stays").exists()
    assert not (disk / "link").is_symlink()
    assert not (disk / "full").exists()


@pytest.mark.parametrize("path", ["//", ".", "../.."])
def test_the_deletion_of_what_cannot_go_is_refused(disk, path, monkeypatch):
    monkeypatch.chdir(disk / "full")  # what a fault deletes is the test's own
    before = disk.tree()
    with pytest.raises(FailedPreconditionError) as raised:
        disk.fs.delete_recursively(path)
    assert raised.value.undeleted == (0, 1)
    assert disk.tree() == before


def test_a_deletion_goes_on_after_a_failure(disk):
    """Nobody may delete what the kernel makes up."""
    with pytest.raises(ModularTFError) as raised:
        disk.fs.delete_recursively("/proc/self/fdinfo")
    assert not isinstance(raised.value, NotFoundError)
    files, directories = raised.value.undeleted
    assert (files > 1, directories) == (True, 1)


@contextmanager
def few_descriptors():
    """Leave this process 40 descriptors more than it has now."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def make_deep(disk, depth):
    """Make directories, one in the other, with a file in each."""
    at = os.open(disk.root, os.O_PATH)
    for name in ("deep", *["directory"] * depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_PATH, dir_fd=at)
        os.close(at)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        at = below
    os.close(at)


def test_a_tree_goes_that_is_deeper_than_there_are_descriptors_and_than_paths_are_long(disk):
    make_deep(disk, 600)
    with few_descriptors():
        disk.call("delete_recursively", "deep")
    assert not (disk / "deep").exists()


def test_a_pattern_may_have_more_levels_than_there_are_descriptors(disk):
    make_deep(disk, 200)
    with few_descriptors():
        found = disk.call("get_matching_paths", "deep/" + "*/" * 200 + "f*")
    assert len(found) == 1


def test_mount_points_and_the_top_are_refused_as_directories(disk):
    with pytest.raises(FailedPreconditionError):
        disk.fs.delete_dir("/proc")
    with pytest.raises(AlreadyExistsError):
        disk.fs.create_dir("/")


# ---- open files ----


def test_a_file_that_cannot_be_read_or_mapped_is_not_called_short_or_missing(disk):
    with disk.fs.new_random_access_file("/proc/self/mem") as file:
        with pytest.raises(ModularTFError, match="/proc/self/mem") as raised:
            file.read(0, 16)
        assert not isinstance(raised.value, OutOfRangeError)
    with pytest.raises(UnimplementedError):
        disk.fs.new_read_only_memory_region_from_file("/sys/devices/system/cpu/online")


def test_a_pipe_is_written_and_synced(disk):
    os.mkfifo(disk / "pipe")
    reader = os.open(disk / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with disk.call("new_writable_file", "pipe") as file:
        file.append(b"through")
        file.sync()
    disk.call("copy_file", FILE, "pipe")
    assert os.read(reader, 99) == b"through" + CONTENT
    os.close(reader)


# ---- renames ----


def test_a_rename_of_a_link_moves_the_link(disk):
    (disk / "link").symlink_to("dir")
    disk.call("rename_file", "link", "moved")
    assert (disk / "moved").is_symlink()


@pytest.mark.parametrize("target", ["hard", "dir/hard"])
def test_a_rename_to_another_link_of_the_file_removes_the_first(disk, target):
    """Where rename(2) does nothing, and leaves both."""
    (disk / target).hardlink_to(disk / FILE)
    (disk / "dir/third").hardlink_to(disk / FILE)
    disk.call("rename_file", FILE, target)
    assert not (disk / FILE).exists()
    assert disk.read(target) == CONTENT
    assert (disk / target).stat().st_nlink == 2


@pytest.mark.parametrize("target", [FILE, "alias/file"])
def test_a_rename_of_a_file_with_links_to_itself_leaves_all(disk, target):
    """Also where another path leads to the same entry."""
    (disk / "hard").hardlink_to(disk / FILE)
    (disk / "alias").symlink_to(".")
    before = disk.names()
    disk.call("rename_file", FILE, target)
    assert disk.read(FILE) == CONTENT
    assert disk.names() == before


def test_a_rename_to_a_link_to_it_from_another_disk_is_refused(disk):
    """A host that made up for it by copying and deleting would lose the file."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        link = Path(folder, "link")
        link.symlink_to(disk / FILE)
        assert link.lstat().st_dev != disk.root.stat().st_dev
        with pytest.raises(FailedPreconditionError):
            disk.fs.rename_file(disk.uri(FILE), str(link))
        assert disk.read(FILE) == CONTENT
        disk.fs.rename_file(disk.uri(OTHER), str(link))
        assert link.read_bytes() == OTHER_CONTENT


# ---- patterns ----


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("[!a-f]*", ["other"]),
        ("fu*/in*", ["full/inner"]),
        ("[", []),
        (r"dir/a\*b", ["dir/a*b"]),
        ("dir/t?st", ["dir/täst"]),
        ("*", ["dir", "empty", "file", "full", "other"]),
    ],
)
def test_a_pattern_finds_what_it_means(disk, pattern, names):
    for name in ("a*b", "acb", "täst"):
        (disk / "dir" / name).touch()
    assert disk.call("get_matching_paths", pattern) == [disk.uri(name) for name in names]
