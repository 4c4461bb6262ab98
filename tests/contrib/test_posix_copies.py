"""Copies on the disk: their bytes, their rights, and what stands under the target's name."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from modular_tf.errors import (
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
)
from tests.contrib.disk import CONTENT, DIRECTORY, EMPTY, FILE, OTHER

ACCESS_LIST, DEFAULT_LIST = "system.posix_acl_access", "system.posix_acl_default"


def mode_of(path):
    return path.stat().st_mode & 0o7777


def umask():
    lines = Path("/proc/self/status").read_text().splitlines()
    (umask,) = [line.split()[1] for line in lines if line.startswith("Umask:")]
    return int(umask, 8)


# ---- bytes ----


def test_a_failing_copy_leaves_the_target(disk):
    """Reading this file fails after it was opened."""
    before = disk.tree()
    with pytest.raises(ModularTFError) as raised:
        disk.fs.copy_file("/proc/self/mem", disk.uri(OTHER))
    assert not isinstance(raised.value, NotFoundError)
    assert disk.tree() == before


@pytest.mark.parametrize(
    "source", ["/proc/version", "/sys/devices/system/cpu/online", "/sys/kernel/notes"]
)
def test_a_file_that_reports_a_wrong_size_is_copied_whole(disk, source):
    """Files of /proc report that they are empty, those of /sys that they have 4096 bytes."""
    for target in ("new", OTHER):
        disk.fs.copy_file(source, disk.uri(target))
        assert disk.read(target) == Path(source).read_bytes()


def test_holes_stay_holes_beyond_two_gibibytes(disk):
    size = (2 << 30) + 12345
    with (disk / "sparse").open("wb") as file:
        file.seek(size - 4)
        file.write(b"tail")
        file.truncate(size + 99)
    disk.call("copy_file", "sparse", "copy")
    with (disk / "copy").open("rb") as copy:
        copy.seek(size - 8)
        assert copy.read() == bytes(4) + b"tail" + bytes(99)
    assert (disk / "copy").stat().st_blocks <= 2 * (disk / "sparse").stat().st_blocks


# ---- rights ----


@pytest.mark.parametrize("mode", [0o444, 0o666, 0o4711])
def test_a_new_copy_has_the_rights_of_its_source(disk, mode):
    """As with cp and TensorFlow: less the umask, and without the bits that lend rights."""
    for name in (FILE, EMPTY):
        (disk / name).chmod(mode)
        disk.call("copy_file", name, f"new {name}")
        assert mode_of(disk / f"new {name}") == mode & 0o777 & ~umask()


@pytest.mark.parametrize(("source", "target"), [(0o600, 0o644), (0o666, 0o600)])
def test_a_replaced_file_keeps_its_rights(disk, source, target):
    (disk / FILE).chmod(source)
    (disk / OTHER).chmod(target)
    disk.call("copy_file", FILE, OTHER)
    assert (disk.read(OTHER), mode_of(disk / OTHER)) == (CONTENT, target)


def access_list(user):
    """A list as the kernel stores it: rights of owner, one user, group, mask and others."""
    entries = {0x01: 6, 0x02: user, 0x04: 0, 0x10: 7, 0x20: 0}
    named = {0x02: 12345}
    packed = [struct.pack("<HHI", t, p, named.get(t, 0xFFFFFFFF)) for t, p in entries.items()]
    return struct.pack("<I", 2) + b"".join(packed)


def test_a_replaced_file_keeps_its_access_list(disk):
    os.setxattr(disk / OTHER, ACCESS_LIST, access_list(user=4))
    before = os.getxattr(disk / OTHER, ACCESS_LIST)
    disk.call("copy_file", FILE, OTHER)
    assert disk.read(OTHER) == CONTENT
    assert os.getxattr(disk / OTHER, ACCESS_LIST) == before


def test_the_access_list_of_a_folder_widens_no_copy(disk):
    os.setxattr(disk.root, DEFAULT_LIST, access_list(user=7))
    (disk / OTHER).chmod(0o660)
    (disk / FILE).chmod(0o600)
    disk.call("copy_file", FILE, OTHER)
    disk.call("copy_file", FILE, "new")
    assert disk.read(OTHER) == CONTENT
    assert ACCESS_LIST not in os.listxattr(disk / OTHER)
    assert mode_of(disk / OTHER) == 0o660
    assert mode_of(disk / "new") & 0o177 == 0, "the mask shuts out the user of the list"


# ---- names ----


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(
    "behind", [OTHER, "missing", f"{DIRECTORY}/missing", f"../root/{DIRECTORY}/../m"]
)
def test_a_copy_to_a_link_goes_where_it_leads(disk, behind, absolute):
    """As opening it for writing does."""
    (disk / "second").symlink_to(disk.uri(behind) if absolute else behind)
    (disk / "first").symlink_to("second")
    disk.call("copy_file", FILE, "first")
    assert (disk / "first").is_symlink()
    assert (disk / "second").is_symlink()
    assert disk.read(behind) == CONTENT
    assert not (disk / behind).is_symlink()


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("itself", ModularTFError),
        ("no/folder/file", NotFoundError),
        ("missing/", FailedPreconditionError),
    ],
)
def test_a_copy_to_a_link_that_leads_nowhere_changes_nothing(disk, target, error):
    (disk / "itself").symlink_to(target)
    before = disk.names()
    with pytest.raises(error):
        disk.call("copy_file", FILE, "itself")
    assert disk.names() == before


def test_a_copy_through_another_name_of_the_file_does_nothing(disk):
    (disk / "link").symlink_to(FILE)
    (disk / "hard").hardlink_to(disk / FILE)
    for name in ("link", "hard"):
        disk.call("copy_file", FILE, name)
        disk.call("copy_file", name, FILE)
    assert disk.read(FILE) == CONTENT
    assert (disk / "link").is_symlink()
    assert (disk / "hard").samefile(disk / FILE)


@pytest.mark.parametrize("spare", [0, 20])
def test_a_copy_takes_the_longest_path(disk, spare):
    """Where the names of unfinished copies have no room behind the path of the folder."""
    room = os.pathconf("/", "PC_PATH_MAX") - 1 - len(os.fsencode(disk.root)) - len("/t") - spare
    folders = ["d" * 199] * (room // 200)
    folders.append("e" * (room - 200 * len(folders) - 1))
    name = "/".join(filter(None, folders))
    (disk / name).mkdir(parents=True)
    for _ in range(2):
        disk.call("copy_file", FILE, f"{name}/t")
    assert [path.name for path in (disk / name).iterdir()] == ["t"]
    assert disk.read(f"{name}/t") == CONTENT
