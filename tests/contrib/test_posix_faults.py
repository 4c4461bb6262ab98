"""Copies, renames and deletions of the POSIX plugin while the system fails or others interfere."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import (
    ABORTED,
    ALREADY_EXISTS,
    NOT_FOUND,
    OK,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    Outcome,
)
from tests.contrib.plugin_process import PluginProcess, installed_plugin
from tests.contrib.world import CONTENT, FILE, OTHER, World
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = bytes(range(256)) * 400
NO_UNNAMED = f"openat_tmpfile fail {errno.EOPNOTSUPP} 1 0"
NO_KERNEL_COPY = f"copy_file_range fail {errno.ENOSYS} 1 0"
NO_SENDFILE = f"sendfile fail {errno.EINVAL} 1 0"
DRAFTS = pytest.mark.parametrize("drafts", [[], [NO_UNNAMED]], ids=["unnamed", "named"])
TARGETS = pytest.mark.parametrize("target", ["new", OTHER])


def start() -> PluginProcess:
    """Start the plugin with kernel_faults.c before the C library."""
    made = compile_object(Path(__file__).with_name("kernel_faults.c"))
    library = link_library("libkernel_faults.so", [made], ["-ldl"])
    preload = " ".join(filter(None, (os.environ.get("LD_PRELOAD"), str(library))))
    plugin = installed_plugin("posix_filesystem")
    return PluginProcess("filesystem", plugin, "file", env={"LD_PRELOAD": preload})


def populated(process: PluginProcess, folder: Path) -> World:
    """Return a folder of a process, with a file that is longer than the others."""
    disk = World(process, str(folder / "root"))
    disk.populate()
    Path(disk.uri("long")).write_bytes(LONG)
    return disk


@pytest.fixture(scope="module")
def process() -> Iterator[PluginProcess]:
    """One process for all tests that leave it alive."""
    process = start()
    yield process
    assert process.close() == 0


@pytest.fixture
def disk(process: PluginProcess, tmp_path: Path) -> World:
    """A folder of that process."""
    return populated(process, tmp_path)


@pytest.fixture
def mortal_disk(tmp_path: Path) -> Iterator[World]:
    """A folder of a process that the test kills."""
    process = start()
    yield populated(process, tmp_path)
    assert process.close() == -signal.SIGKILL


def faulty(disk: World, faults: list[str], slot: str, *names: str) -> Outcome:
    outcome: Outcome = disk.plugin.faulty(faults, "call", slot, *map(disk.uri, names))
    return outcome


def names_in(disk: World) -> set[str]:
    """The names in the folder, also of a process that is gone."""
    return {path.name for path in Path(disk.root).iterdir()}


def make_sparse(disk: World, name: str) -> bytes:
    """64 KiB of data, a hole of the same length, and data again."""
    piece = b"data" * (1 << 14)
    with Path(disk.uri(name)).open("wb") as file:
        file.write(piece)
        file.seek(2 * len(piece))
        file.write(piece)
    return piece + bytes(len(piece)) + piece


# ---- bytes ----


@pytest.mark.parametrize("first", [1, 3], ids=["at-once", "later"])
@pytest.mark.parametrize(
    "error", [errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EOPNOTSUPP, errno.EPERM]
)
def test_what_the_kernel_does_not_offer_is_done_otherwise(
    disk: World, error: int, first: int
) -> None:
    short = "copy_file_range short 1000"
    refused = [short, f"copy_file_range fail {error} {first} 0"]
    for faults in (refused, [*refused, NO_SENDFILE], [*refused, "sendfile short 777"]):
        assert faulty(disk, faults, "copy_file", "long", "new").code == OK
        assert disk.read("new") == LONG


def test_short_and_interrupted_reads_and_writes_are_no_end(disk: World) -> None:
    slow = [NO_KERNEL_COPY, NO_SENDFILE, "read short 1000", "write short 77"]
    interrupted = [f"{call} fail {errno.EINTR} 2 3" for call in ("read", "write")]
    assert faulty(disk, [*slow, *interrupted], "copy_file", "long", "new").code == OK
    assert disk.read("new") == LONG


def test_a_device_that_takes_no_byte_ends_the_copy(disk: World) -> None:
    slow = [NO_KERNEL_COPY, NO_SENDFILE, "write short 0"]
    assert faulty(disk, slow, "copy_file", "long", "new").code != OK
    assert not disk.exists("new")


@pytest.mark.parametrize("way", [[], [NO_KERNEL_COPY], [NO_KERNEL_COPY, NO_SENDFILE]])
@pytest.mark.parametrize("size", [0, 100, 70_000])
def test_a_source_that_shrinks_gives_what_is_left(disk: World, size: int, way: list[str]) -> None:
    first = {0: "copy_file_range", 1: "sendfile", 2: "read"}[len(way)]
    for make in (lambda: make_sparse(disk, "source"), lambda: _make_long(disk, "source")):
        content = make()
        cut = f"{first} cut {size} {disk.uri('source')}"
        assert faulty(disk, [*way, cut], "copy_file", "source", "new").code == OK
        copied = disk.read("new")
        assert copied == content[: len(copied)]
        assert len(copied) <= size


def _make_long(disk: World, name: str) -> bytes:
    Path(disk.uri(name)).write_bytes(LONG)
    return LONG


@pytest.mark.parametrize("call", ["lseek_data", "lseek_hole", "copy_file_range"])
def test_a_source_that_grows_gives_no_byte_that_it_never_had(disk: World, call: str) -> None:
    content = make_sparse(disk, "source")
    append = f"{call} append {disk.uri('source')}"
    assert faulty(disk, [append], "copy_file", "source", "new").code == OK
    copied = disk.read("new")
    assert len(copied) >= len(content)
    assert (content + b"more").startswith(copied)


def test_data_that_is_appended_after_the_last_hole_is_no_hole(disk: World) -> None:
    """What is appended between the last look for data and the end of the copy may be missing."""
    Path(disk.uri("source")).touch()
    os.truncate(disk.uri("source"), 1 << 20)
    append = f"lseek_data append {disk.uri('source')}"
    assert faulty(disk, [append], "copy_file", "source", "new").code == OK
    assert (bytes(1 << 20) + b"more").startswith(disk.read("new"))


@pytest.mark.parametrize("call", ["lseek_data", "lseek_hole"])
def test_a_disk_that_does_not_know_its_holes(disk: World, call: str) -> None:
    content = make_sparse(disk, "source")
    refused = f"{call} fail {errno.EINVAL} 1 0"
    assert faulty(disk, [refused], "copy_file", "source", "new").code == OK
    assert disk.read("new") == content


# ---- the copy that is not finished ----


@pytest.mark.parametrize(
    "fault",
    [
        f"copy_file_range fail {errno.ENOSPC} 1 0",
        f"copy_file_range fail {errno.EDQUOT} 2 0\ncopy_file_range short 1000",
        f"{NO_KERNEL_COPY}\n{NO_SENDFILE}\nwrite fail {errno.ENOSPC} 1 0",
        f"{NO_KERNEL_COPY}\n{NO_SENDFILE}\nread fail {errno.EIO} 1 0",
        f"close fail {errno.EIO} 1 1",
        f"dup fail {errno.EMFILE} 1 0",
    ],
)
@DRAFTS
@TARGETS
def test_a_copy_that_fails_leaves_nothing(
    disk: World, fault: str, drafts: list[str], target: str
) -> None:
    before = disk.tree()
    outcome = faulty(disk, [*drafts, fault], "copy_file", "long", target)
    assert outcome.code != OK
    assert disk.tree() == before


@pytest.mark.parametrize("call", ["linkat", "renameat"])
@DRAFTS
@TARGETS
def test_a_copy_that_cannot_take_its_name_leaves_nothing(
    disk: World, call: str, drafts: list[str], target: str
) -> None:
    before = disk.tree()
    outcome = faulty(
        disk, [*drafts, f"{call} fail {errno.ENOSPC} 1 0"], "copy_file", "long", target
    )
    if drafts and call == "linkat":  # which is for files without a name
        assert disk.read(target) == LONG
    else:
        assert outcome.code == RESOURCE_EXHAUSTED
        assert disk.tree() == before


@TARGETS
@pytest.mark.parametrize("missing", [NO_UNNAMED, f"faccessat fail {errno.ENOENT} 1 0"])
def test_a_disk_without_files_that_have_no_name(disk: World, missing: str, target: str) -> None:
    """Or a system without /proc, by which they get one."""
    names = {*disk.children(), target}
    assert faulty(disk, [missing], "copy_file", "long", target).code == OK
    assert disk.read(target) == LONG
    assert set(disk.children()) == names


def test_names_that_are_all_taken_end_the_copy(disk: World) -> None:
    before = disk.tree()
    taken = f"openat_exclusive fail {errno.EEXIST} 1 0"
    outcome = faulty(disk, [NO_UNNAMED, taken], "copy_file", "long", OTHER)
    assert outcome.code == ALREADY_EXISTS
    taken = f"linkat fail {errno.EEXIST} 1 0"
    assert faulty(disk, [taken], "copy_file", "long", "new").code == ALREADY_EXISTS
    assert disk.tree() == before


def test_a_file_that_appears_meanwhile_is_replaced(disk: World) -> None:
    appears = f"linkat replace {disk.uri('new')} {disk.uri(FILE)}"
    assert faulty(disk, [appears], "copy_file", "long", "new").code == OK
    assert disk.read("new") == LONG


@pytest.mark.parametrize("error", [errno.EACCES, errno.EPERM, errno.ENOENT])
def test_a_folder_that_takes_no_file_has_the_target_overwritten(disk: World, error: int) -> None:
    inode = Path(disk.uri(OTHER)).stat().st_ino
    locked = [f"openat_{kind} fail {error} 1 0" for kind in ("tmpfile", "exclusive")]
    assert faulty(disk, locked, "copy_file", "long", OTHER).code == OK
    assert faulty(disk, locked, "copy_file", "long", "new").code in {PERMISSION_DENIED, NOT_FOUND}
    assert disk.read(OTHER) == LONG
    assert Path(disk.uri(OTHER)).stat().st_ino == inode
    assert not disk.exists("new")


def test_a_file_that_may_not_be_written_is_not_replaced(disk: World) -> None:
    """Its folder would allow that, and cp and TensorFlow do not do it either."""
    before = disk.tree()
    protected = f"faccessat fail {errno.EACCES} 1 0"
    assert faulty(disk, [protected], "copy_file", "long", OTHER).code == PERMISSION_DENIED
    assert disk.tree() == before


# ---- rights ----


@TARGETS
@pytest.mark.parametrize(("source", "narrow"), [(0o644, 0o600), (0o400, 0o400), (0o640, 0o600)])
def test_an_unfinished_copy_is_no_wider_than_the_file_that_it_will_be(
    mortal_disk: World, source: int, narrow: int, target: str
) -> None:
    """A process that is killed while it copies shows what others may see meanwhile."""
    disk, listed = mortal_disk, names_in(mortal_disk)
    Path(disk.uri("long")).chmod(source)
    with pytest.raises(AssertionError, match="ended its process with -9"):
        faulty(disk, [NO_UNNAMED, "copy_file_range kill"], "copy_file", "long", target)
    (unfinished,) = names_in(disk) - listed
    mode = Path(disk.uri(unfinished)).stat().st_mode & 0o777
    assert mode & ~(source if target == "new" else narrow) == 0


@TARGETS
def test_nothing_is_left_by_a_copy_that_is_killed(mortal_disk: World, target: str) -> None:
    disk, listed = mortal_disk, names_in(mortal_disk)
    with pytest.raises(AssertionError, match="ended its process with -9"):
        faulty(disk, ["dup kill"], "copy_file", "long", target)
    assert names_in(disk) == listed
    assert Path(disk.uri(OTHER)).read_bytes() == b"0123456789"


@pytest.mark.parametrize(("mode", "narrow"), [(0o664, 0o644), (0o640, 0o600), (0o606, 0o600)])
@DRAFTS
def test_a_group_that_cannot_be_kept_is_shut_out(
    disk: World, mode: int, narrow: int, drafts: list[str]
) -> None:
    """Only the superuser can give the file a group that its folder's files do not have."""
    target = Path(disk.uri(OTHER))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(target, -1, 12345)
    target.chmod(mode)
    refused = f"fchown fail {errno.EPERM} 1 0"
    assert faulty(disk, [*drafts, refused], "copy_file", "long", OTHER).code == OK
    assert target.stat().st_mode & 0o777 == (narrow if is_root else mode)


# ---- renames ----


def test_a_file_that_replaces_the_source_of_a_rename_is_renamed(disk: World) -> None:
    """Two links of one file: the second is to go, and nothing that came in its place meanwhile."""
    Path(disk.uri("link")).hardlink_to(disk.uri(FILE))
    replaced = f"renameat replace {disk.uri('link')} {disk.uri('long')}"
    assert faulty(disk, [replaced], "rename_file", "link", FILE).code == OK
    assert disk.read(FILE) == LONG
    assert not disk.exists("link")


def test_a_rename_of_a_link_that_fails_puts_it_back(disk: World) -> None:
    Path(disk.uri("link")).hardlink_to(disk.uri(FILE))
    before = disk.tree()
    refused = f"renameat fail {errno.EACCES} 2 1"
    assert faulty(disk, [refused], "rename_file", "link", FILE).code == PERMISSION_DENIED
    assert disk.tree() == before
    assert Path(disk.uri("link")).samefile(disk.uri(FILE))


# ---- deletions ----


def test_a_deletion_does_not_leave_by_a_directory_that_was_moved(disk: World) -> None:
    """On its way back it would come out where the directory is now."""
    deep = "tree/" + "/".join("d" * 40)
    assert disk.call("recursively_create_dir", deep).code == OK
    middle = disk.uri("tree/" + "/".join("d" * 30))
    moved = f"openat_parent replace {disk.uri('full/moved')} {middle}"
    outcome = disk.plugin.faulty([moved], "delete_recursively", disk.uri("tree"))
    assert outcome.code == ABORTED
    assert outcome.value[0] == 0
    assert outcome.value[1] > 0
    assert disk.read("full/inner") == b"inside"
    assert disk.children("full/moved") == []


def test_an_interrupted_sync_is_done_again(disk: World) -> None:
    file = disk.open("new_writable_file", "new")
    disk.plugin.append(file, CONTENT)
    interrupted = f"fsync fail {errno.EINTR} 1 2"
    assert disk.plugin.faulty([interrupted], "writer", "sync", file).code == OK
    assert disk.plugin.writer("close", file).code == OK
    disk.plugin.cleanup("writer", file)
