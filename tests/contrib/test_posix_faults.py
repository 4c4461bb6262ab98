"""Copies, renames and deletions of the POSIX plugin while the system fails or others interfere."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from modular_tf import PluginService
from modular_tf.errors import (
    AbortedError,
    AlreadyExistsError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from tests.contrib.disk import CONTENT, FILE, OTHER, Disk
from tests.fixtures.compiler import compile_object, link_library

SOURCES = Path(__file__).parents[2] / "contrib" / "posix_filesystem" / "src"
MACROS = ("_GNU_SOURCE", "_FILE_OFFSET_BITS=64", 'MTF_POSIX_SCHEMES="faulty"')
LONG = bytes(range(256)) * 400
NO_UNNAMED = f"openat_tmpfile fail {errno.EOPNOTSUPP} 1 0"
NO_KERNEL_COPY = f"copy_file_range fail {errno.ENOSYS} 1 0"
NO_SENDFILE = f"sendfile fail {errno.EINVAL} 1 0"
DRAFTS = pytest.mark.parametrize("drafts", [[], [NO_UNNAMED]], ids=["unnamed", "named"])
TARGETS = pytest.mark.parametrize("target", ["new", OTHER])


class FaultyDisk(Disk):
    """A folder that a plugin changes whose calls of the system fail as kernel_faults.c states."""

    def __init__(self, fs, root, library):
        super().__init__(fs, root, "faulty://")
        (self / "long").write_bytes(LONG)
        self._begin, self._end = (
            ctypes.CFUNCTYPE(None, ctypes.c_char_p)(library.symbol(f"kernel_faults_{name}"))
            for name in ("begin", "end")
        )

    @contextmanager
    def faults(self, *lines):
        self._begin("\n".join(lines).encode())
        try:
            yield
        finally:
            self._end(None)

    def copy(self, faults, source, target):
        with self.faults(*faults):
            self.call("copy_file", source, target)

    def dies_of(self, faults, source, target):
        """Return the names that a process leaves which is killed while it copies."""
        before = self.names()
        child = os.fork()
        if child == 0:
            try:
                self.copy(faults, source, target)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        return self.names() - before


@pytest.fixture(scope="module")
def faulty_service():
    """A service with the plugin, which calls the functions of kernel_faults.c as the system's."""
    objects = [compile_object(source, MACROS) for source in sorted(SOURCES.glob("*.c"))]
    objects.append(compile_object(Path(__file__).with_name("kernel_faults.c")))
    library = link_library("libfaulty_filesystem.so", objects, ["-Wl,-Bsymbolic", "-ldl"])
    with PluginService() as service:
        service.load(str(library))
        yield service, service.entry(str(library)).library


@pytest.fixture
def disk(faulty_service, tmp_path, copies_by_the_plugin):
    service, library = faulty_service
    (tmp_path / "root").mkdir()
    return FaultyDisk(service.filesystem("faulty"), tmp_path / "root", library)


def make_sparse(disk, name):
    """64 KiB of data, a hole of the same length, and data again."""
    piece = b"data" * (1 << 14)
    with (disk / name).open("wb") as file:
        file.write(piece)
        file.seek(2 * len(piece))
        file.write(piece)
    return piece + bytes(len(piece)) + piece


# ---- bytes ----


@pytest.mark.parametrize("first", [1, 3], ids=["at once", "later"])
@pytest.mark.parametrize(
    "error", [errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EOPNOTSUPP, errno.EPERM]
)
def test_what_the_kernel_does_not_offer_is_done_otherwise(disk, error, first):
    short = "copy_file_range short 1000"
    refused = [short, f"copy_file_range fail {error} {first} 0"]
    for faults in (refused, [*refused, NO_SENDFILE], [*refused, "sendfile short 777"]):
        disk.copy(faults, "long", "new")
        assert disk.read("new") == LONG


def test_short_and_interrupted_reads_and_writes_are_no_end(disk):
    slow = [NO_KERNEL_COPY, NO_SENDFILE, "read short 1000", "write short 77"]
    interrupted = [f"{call} fail {errno.EINTR} 2 3" for call in ("read", "write")]
    disk.copy([*slow, *interrupted], "long", "new")
    assert disk.read("new") == LONG


@pytest.mark.parametrize(
    ("call", "way"),
    [
        ("copy_file_range", []),
        ("sendfile", [NO_KERNEL_COPY]),
        ("read", [NO_KERNEL_COPY, NO_SENDFILE]),
    ],
)
@pytest.mark.parametrize("size", [0, 100, 70_000])
def test_a_source_that_shrinks_gives_what_is_left(disk, size, call, way):
    contents = {"sparse": make_sparse(disk, "sparse"), "long": LONG}
    for source, content in contents.items():
        disk.copy([*way, f"{call} cut {size} {disk / source}"], source, "new")
        copied = disk.read("new")
        assert copied == content[: len(copied)]
        assert len(copied) <= size


@pytest.mark.parametrize("call", ["lseek_data", "lseek_hole", "copy_file_range"])
def test_a_source_that_grows_gives_no_byte_that_it_never_had(disk, call):
    content = make_sparse(disk, "source")
    disk.copy([f"{call} append {disk / 'source'}"], "source", "new")
    copied = disk.read("new")
    assert len(copied) >= len(content)
    assert (content + b"more").startswith(copied)


@pytest.mark.parametrize("call", ["lseek_data", "lseek_hole"])
def test_a_disk_that_does_not_know_its_holes_is_read_whole(disk, call):
    content = make_sparse(disk, "source")
    disk.copy([f"{call} fail {errno.EINVAL} 1 0"], "source", "new")
    assert disk.read("new") == content


# ---- the copy that is not finished ----


@pytest.mark.parametrize(
    "faults",
    [
        [f"copy_file_range fail {errno.ENOSPC} 1 0"],
        [f"copy_file_range fail {errno.EDQUOT} 2 0", "copy_file_range short 1000"],
        [NO_KERNEL_COPY, NO_SENDFILE, f"write fail {errno.ENOSPC} 1 0"],
        [NO_KERNEL_COPY, NO_SENDFILE, f"read fail {errno.EIO} 1 0"],
        [NO_KERNEL_COPY, NO_SENDFILE, "write short 0"],
        [f"close fail {errno.EIO} 1 1"],
        [f"dup fail {errno.EMFILE} 1 0"],
    ],
    ids=lambda faults: faults[-1],
)
@DRAFTS
@TARGETS
def test_a_copy_that_fails_leaves_nothing(disk, faults, drafts, target):
    before = disk.tree()
    with pytest.raises(ModularTFError):
        disk.copy([*drafts, *faults], "long", target)
    assert disk.tree() == before


@TARGETS
@pytest.mark.parametrize("missing", [NO_UNNAMED, f"faccessat fail {errno.ENOENT} 1 0"])
def test_a_disk_without_files_that_have_no_name_gets_copies(disk, missing, target):
    """Or a system without /proc, by which they get one."""
    names = {*disk.names(), target}
    disk.copy([missing], "long", target)
    assert disk.read(target) == LONG
    assert disk.names() == names


@pytest.mark.parametrize(
    ("faults", "target", "error"),
    [
        ([f"linkat fail {errno.ENOSPC} 1 0"], "new", ResourceExhaustedError),
        ([f"renameat fail {errno.ENOSPC} 1 0"], OTHER, ResourceExhaustedError),
        ([NO_UNNAMED, f"renameat fail {errno.ENOSPC} 1 0"], "new", ResourceExhaustedError),
        ([NO_UNNAMED, f"openat_exclusive fail {errno.EEXIST} 1 0"], OTHER, AlreadyExistsError),
        ([f"linkat fail {errno.EEXIST} 1 0"], "new", AlreadyExistsError),
    ],
)
def test_a_copy_that_cannot_take_its_name_leaves_nothing(disk, faults, target, error):
    before = disk.tree()
    with pytest.raises(error):
        disk.copy(faults, "long", target)
    assert disk.tree() == before


def test_a_file_that_appears_meanwhile_is_replaced(disk):
    disk.copy([f"linkat replace {disk / 'new'} {disk / FILE}"], "long", "new")
    assert disk.read("new") == LONG


@pytest.mark.parametrize("error", [errno.EACCES, errno.EPERM, errno.ENOENT])
def test_a_folder_that_takes_no_file_has_the_target_overwritten(disk, error):
    inode = (disk / OTHER).stat().st_ino
    locked = [f"openat_{kind} fail {error} 1 0" for kind in ("tmpfile", "exclusive")]
    disk.copy(locked, "long", OTHER)
    with pytest.raises((PermissionDeniedError, NotFoundError)):
        disk.copy(locked, "long", "new")
    assert disk.read(OTHER) == LONG
    assert (disk / OTHER).stat().st_ino == inode
    assert not (disk / "new").exists()


def test_a_file_that_may_not_be_written_is_not_replaced(disk):
    """Its folder would allow that, and cp and TensorFlow do not do it either."""
    before = disk.tree()
    with pytest.raises(PermissionDeniedError):
        disk.copy([f"faccessat fail {errno.EACCES} 1 0"], "long", OTHER)
    assert disk.tree() == before


# ---- rights ----


@TARGETS
@pytest.mark.parametrize(("source", "narrow"), [(0o644, 0o600), (0o400, 0o400), (0o640, 0o600)])
def test_an_unfinished_copy_is_no_wider_than_the_file_that_it_will_be(disk, source, narrow, target):
    (disk / "long").chmod(source)
    (unfinished,) = disk.dies_of([NO_UNNAMED, "copy_file_range kill"], "long", target)
    mode = (disk / unfinished).stat().st_mode & 0o777
    assert mode & ~(source if target == "new" else narrow) == 0


@pytest.mark.parametrize(("mode", "narrow"), [(0o664, 0o644), (0o640, 0o600), (0o606, 0o600)])
@DRAFTS
def test_a_group_that_cannot_be_kept_is_shut_out(disk, mode, narrow, drafts):
    """Only the superuser can give the file a group that its folder's files do not have."""
    target = disk / OTHER
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(target, -1, 12345)
    target.chmod(mode)
    disk.copy([*drafts, f"fchown fail {errno.EPERM} 1 0"], "long", OTHER)
    assert target.stat().st_mode & 0o777 == (narrow if is_root else mode)


# ---- renames ----


def test_a_file_that_replaces_the_source_of_a_rename_is_renamed(disk):
    """Two links of one file: the second is to go, and nothing that came in its place meanwhile."""
    (disk / "link").hardlink_to(disk / FILE)
    with disk.faults(f"renameat replace {disk / 'link'} {disk / 'long'}"):
        disk.call("rename_file", "link", FILE)
    assert disk.read(FILE) == LONG
    assert not (disk / "link").exists()


def test_a_rename_of_a_link_that_fails_puts_it_back(disk):
    (disk / "link").hardlink_to(disk / FILE)
    before = disk.tree()
    with disk.faults(f"renameat fail {errno.EACCES} 2 1"), pytest.raises(PermissionDeniedError):
        disk.call("rename_file", "link", FILE)
    assert disk.tree() == before
    assert (disk / "link").samefile(disk / FILE)


# ---- deletions and writes ----


def test_a_deletion_does_not_leave_by_a_directory_that_was_moved(disk):
    """On its way back it would come out where the directory is now."""
    (disk / "tree" / "/".join("d" * 40)).mkdir(parents=True)
    middle = disk / "tree" / "/".join("d" * 30)
    moved = f"openat_parent replace {disk / 'full/moved'} {middle}"
    with disk.faults(moved), pytest.raises(AbortedError) as raised:
        disk.call("delete_recursively", "tree")
    assert raised.value.undeleted[0] == 0
    assert raised.value.undeleted[1] > 0
    assert disk.read("full/inner") == b"inside"
    assert list((disk / "full/moved").iterdir()) == []


def test_an_interrupted_sync_is_done_again(disk):
    with disk.call("new_writable_file", "new") as file:
        file.append(CONTENT)
        with disk.faults(f"fsync fail {errno.EINTR} 1 2"):
            file.sync()
    assert disk.read("new") == CONTENT
