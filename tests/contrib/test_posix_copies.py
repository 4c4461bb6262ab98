"""Copies on the disk: their bytes, their rights, and what stands under the target's name."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import (
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OK,
    RESOURCE_EXHAUSTED,
)
from tests.contrib.world import CONTENT, DIRECTORY, EMPTY, FILE, OTHER

if TYPE_CHECKING:
    from tests.contrib.world import World

FULL_DEVICE = "/dev/full"
ACCESS_LIST, DEFAULT_LIST = "system.posix_acl_access", "system.posix_acl_default"


@pytest.fixture
def disk(posix: World) -> World:
    """A populated folder."""
    posix.populate()
    return posix


def path_of(disk: World, name: str) -> Path:
    return Path(disk.uri(name))


def mode_of(disk: World, name: str) -> int:
    return path_of(disk, name).stat().st_mode & 0o7777


def umask_of(disk: World) -> int:
    lines = Path(f"/proc/{disk.plugin.pid}/status").read_text().splitlines()
    (umask,) = [line.split()[1] for line in lines if line.startswith("Umask:")]
    return int(umask, 8)


# ---- bytes ----


def test_failing_copy_leaves_the_target(disk: World) -> None:
    """Row 155: reading this file fails after it was opened."""
    before = disk.tree()
    outcome = disk.plugin.call("copy_file", "/proc/self/mem", disk.uri(OTHER))
    assert outcome.code not in {OK, NOT_FOUND}
    assert disk.tree() == before


@pytest.mark.parametrize(
    "source", ["/proc/version", "/sys/devices/system/cpu/online", "/sys/kernel/notes"]
)
@pytest.mark.parametrize("target", ["new", OTHER])
def test_copy_of_a_file_that_tells_a_wrong_size(disk: World, source: str, target: str) -> None:
    """Files of /proc say that they are empty, those of /sys that they have 4096 bytes."""
    assert disk.plugin.call("copy_file", source, disk.uri(target)).code == OK
    assert disk.read(target) == Path(source).read_bytes()


def test_copy_to_a_device(disk: World) -> None:
    assert disk.plugin.call("copy_file", disk.uri(FILE), "/dev/null").code == OK
    assert Path("/dev/null").is_char_device()
    assert disk.plugin.call("copy_file", disk.uri(FILE), FULL_DEVICE).code == RESOURCE_EXHAUSTED


def test_copy_to_another_device(disk: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Bytes that the kernel does not move between two filesystems arrive all the same."""
    assert Path("/dev/shm").stat().st_dev != path_of(disk, "").stat().st_dev
    name = f"/dev/shm/{tmp_path_factory.getbasetemp().name}-{os.getpid()}"
    try:
        assert disk.plugin.call("copy_file", disk.uri(OTHER), name).code == OK
        assert Path(name).read_bytes() == b"0123456789"
    finally:
        Path(name).unlink()


def test_sparse_copy_beyond_two_gibibytes(disk: World) -> None:
    """Row 154."""
    size = (2 << 30) + 12345
    with path_of(disk, "sparse").open("wb") as file:
        file.truncate(size)
        file.seek(size - 4)
        file.write(b"tail")
        file.truncate(size + 99)
    assert disk.call("copy_file", "sparse", "copy").code == OK
    copy = disk.open("new_random_access_file", "copy")
    assert disk.plugin.read(copy, size - 8, 8).value == (8, bytes(4) + b"tail")
    disk.plugin.cleanup("reader", copy)
    assert disk.call("get_file_size", "copy").value == size + 99
    blocks = [path_of(disk, name).stat().st_blocks for name in ("sparse", "copy")]
    assert blocks[1] <= 2 * blocks[0], "the holes were filled"


def test_copy_of_nothing_but_a_hole(disk: World) -> None:
    path_of(disk, "hole").touch()
    os.truncate(disk.uri("hole"), 10 << 30)
    assert disk.call("copy_file", "hole", "copy").code == OK
    assert path_of(disk, "copy").stat().st_size == 10 << 30
    assert path_of(disk, "copy").stat().st_blocks < 100


# ---- rights ----


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755, 0o666, 0o4711])
@pytest.mark.parametrize("name", [FILE, EMPTY])
def test_new_copy_has_the_rights_of_its_source(disk: World, mode: int, name: str) -> None:
    """As with cp and TensorFlow: less the umask, and without the bits that lend rights."""
    path_of(disk, name).chmod(mode)
    assert disk.call("copy_file", name, "new").code == OK
    assert mode_of(disk, "new") == mode & 0o777 & ~umask_of(disk)


@pytest.mark.parametrize("source", [0o600, 0o666])
@pytest.mark.parametrize("target", [0o600, 0o640, 0o644])
def test_replaced_file_keeps_its_rights(disk: World, source: int, target: int) -> None:
    path_of(disk, FILE).chmod(source)
    path_of(disk, OTHER).chmod(target)
    assert disk.call("copy_file", FILE, OTHER).code == OK
    assert (disk.read(OTHER), mode_of(disk, OTHER)) == (CONTENT, target)


def access_list(**users: int) -> bytes:
    """A list as the kernel keeps it: rights of the owner, group, mask, others and one user."""
    entries = {0x01: 6, 0x02: users["user"], 0x04: 0, 0x10: 7, 0x20: 0}
    named = {0x02: 12345}
    packed = [struct.pack("<HHI", t, p, named.get(t, 0xFFFFFFFF)) for t, p in entries.items()]
    return struct.pack("<I", 2) + b"".join(packed)


def lists_of(disk: World, name: str) -> list[str]:
    return [key for key in os.listxattr(disk.uri(name)) if key == ACCESS_LIST]


def test_replaced_file_keeps_its_access_list(disk: World) -> None:
    os.setxattr(disk.uri(OTHER), ACCESS_LIST, access_list(user=4))
    before = os.getxattr(disk.uri(OTHER), ACCESS_LIST)
    assert disk.call("copy_file", FILE, OTHER).code == OK
    assert disk.read(OTHER) == CONTENT
    assert os.getxattr(disk.uri(OTHER), ACCESS_LIST) == before


def test_replaced_file_gets_no_access_list_of_its_folder(disk: World) -> None:
    path_of(disk, OTHER).chmod(0o660)
    os.setxattr(disk.uri(""), DEFAULT_LIST, access_list(user=7))
    assert disk.call("copy_file", FILE, OTHER).code == OK
    assert disk.read(OTHER) == CONTENT
    assert lists_of(disk, OTHER) == []
    assert mode_of(disk, OTHER) == 0o660


def test_new_copy_gets_no_more_than_its_source_by_the_list_of_its_folder(disk: World) -> None:
    os.setxattr(disk.uri(""), DEFAULT_LIST, access_list(user=7))
    path_of(disk, FILE).chmod(0o600)
    assert disk.call("copy_file", FILE, "new").code == OK
    assert mode_of(disk, "new") & 0o177 == 0, "the mask shuts out the user of the list"


# ---- names ----


def test_copy_keeps_the_link_to_the_target(disk: World) -> None:
    link = path_of(disk, "link")
    link.symlink_to(OTHER)
    assert disk.call("copy_file", FILE, "link").code == OK
    assert link.is_symlink()
    assert disk.read(OTHER) == CONTENT


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("behind", ["missing", f"{DIRECTORY}/missing", f"../root/{DIRECTORY}/../m"])
def test_copy_to_a_link_to_nothing_makes_what_it_leads_to(
    disk: World, behind: str, absolute: bool
) -> None:
    """As opening it for writing does."""
    path_of(disk, "second").symlink_to(disk.uri(behind) if absolute else behind)
    path_of(disk, "first").symlink_to("second")
    assert disk.call("copy_file", FILE, "first").code == OK
    assert path_of(disk, "first").is_symlink()
    assert path_of(disk, "second").is_symlink()
    assert path_of(disk, behind).read_bytes() == CONTENT
    assert not path_of(disk, behind).is_symlink()


def test_copy_to_a_link_that_leads_nowhere_changes_nothing(disk: World) -> None:
    path_of(disk, "loop").symlink_to("loop")
    path_of(disk, "astray").symlink_to("no/folder/file")
    path_of(disk, "to-a-folder").symlink_to("missing/")
    before = disk.children()
    outcomes = [disk.call("copy_file", FILE, name) for name in ("loop", "astray", "to-a-folder")]
    assert OK not in {outcome.code for outcome in outcomes}
    assert [outcome.code for outcome in outcomes[1:]] == [NOT_FOUND, FAILED_PRECONDITION]
    assert disk.children() == before


def test_copy_through_another_name_of_the_file(disk: World) -> None:
    """Row 152."""
    path_of(disk, "link").symlink_to(FILE)
    path_of(disk, "hard").hardlink_to(disk.uri(FILE))
    for name in ("link", "hard"):
        assert disk.call("copy_file", FILE, name).code == OK
        assert disk.call("copy_file", name, FILE).code == OK
    assert disk.read(FILE) == CONTENT
    assert path_of(disk, "link").is_symlink()
    assert path_of(disk, "hard").samefile(disk.uri(FILE)), "nothing was to be done"


def test_copy_to_the_longest_name(disk: World) -> None:
    for target, code in (("n" * 255, OK), ("n" * 256, INVALID_ARGUMENT)):
        assert disk.call("copy_file", FILE, target).code == code
    assert disk.read("n" * 255) == CONTENT


@pytest.mark.parametrize("spare", [0, 5, 20])
def test_copy_to_the_longest_path(disk: World, spare: int) -> None:
    """Where the names of unfinished copies have no room behind the path of the folder."""
    room = os.pathconf("/", "PC_PATH_MAX") - 1 - len(os.fsencode(disk.root)) - len("/t") - spare
    folders = ["d" * 199] * (room // 200)
    folders.append("e" * (room - 200 * len(folders) - 1))
    name = "/".join(filter(None, folders))
    assert disk.call("recursively_create_dir", name).code == OK
    for _ in range(2):
        assert disk.call("copy_file", FILE, f"{name}/t").code == OK
    assert disk.children(name) == ["t"]
    assert disk.read(f"{name}/t") == CONTENT
