"""The host's own copy and rename: they end, tear nothing, and keep what they copy."""

from __future__ import annotations

import errno
import os

import pytest
from fsspec.implementations.local import LocalFileSystem

from modular_tf.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
)
from modular_tf.filesystem.copying import COPY_BLOCK, CopyWatch, copy_through
from modular_tf.filesystem.held_writer import HeldWriter
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.trees import Item, move_by_copy
from tests.filesystem.memory_store import MemoryStore, filesystem_of
from tests.fixtures.interrupts import interrupted

LARGE = bytes(range(256)) * (COPY_BLOCK // 256) * 2 + b"end"


def calls(store, *operations):
    return [call for call in store.calls if call[0] in operations]


@pytest.fixture
def renaming(store):
    """A filesystem on the store that has a rename, and no copy."""
    return filesystem_of(store, also=("rename_file",))


def fail_second(store, failing):
    """Let the second append fail, or the first call of another operation."""
    enter, seen = store.enter, []

    def fail_later(operation, uri):
        if operation == failing:
            seen.append(uri)
            if operation != "append" or len(seen) == 2:
                raise ResourceExhaustedError("the disk is full")
        return enter(operation, uri)

    store.enter = fail_later


class Interrupting(CopyWatch):
    def advance(self, n_bytes):
        raise KeyboardInterrupt


# ---- copy_file ----


@pytest.mark.parametrize(
    ("content", "old", "target", "arrived"),
    [
        (b"", {}, "/g", "/g"),
        (b"", {"/g": b"longer"}, "/g", "/g"),
        (b"x", {"/g": b"longer"}, "/g", "/g"),
        (LARGE, {}, "/g", "/g"),
        (LARGE, {"/g": b"shorter"}, "/g", "/g"),
        (b"x", {}, "/d", "/d/f"),
        (b"x", {}, "/d/", "/d/f"),
    ],
    ids=lambda given: given if isinstance(given, str) else str(len(given)),
)
def test_a_copy_is_equal_and_goes_into_a_directory(content, old, target, arrived, store, fs):
    store.dirs.add("/d")
    store.files.update({"/f": content, **old})
    fs.copy_file("mem://h/f", f"mem://h{target}")

    assert store.files == {"/f": content, arrived: content}


def test_what_cannot_be_read_costs_the_target_nothing(store, fs):
    store.files.update({"/f": b"x", "/g": b"kept"})
    store.dirs.add("/d")
    store.faults["read", "/f"] = UnavailableError("down")
    for source, error in (
        ("mem://h/f", UnavailableError),
        ("mem://h/d", FailedPreconditionError),
        ("mem://h/absent", NotFoundError),
    ):
        with pytest.raises(error):
            fs.copy_file(source, "mem://h/g")

    assert store.files["/g"] == b"kept"


@pytest.mark.parametrize("old", [{}, {"/g": b"old"}], ids=len)
@pytest.mark.parametrize("failing", ["append", "close_writer"])
def test_without_a_rename_a_torn_target_is_removed(failing, old, store, fs):
    """Half a file is worse than none; that the old one stays needs a rename."""
    store.files.update({"/f": LARGE, **old})
    fail_second(store, failing)
    with pytest.raises(ResourceExhaustedError, match="disk is full"):
        fs.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": LARGE}
    assert ("close_reader", "/f") in store.calls


@pytest.mark.parametrize(
    "failing", ["new_writable_file", "read", "append", "close_writer", "rename_file"]
)
@pytest.mark.parametrize("target", ["mem://h/g", "mem://h/d"])
def test_a_copy_that_fails_leaves_an_old_target_as_it_was(failing, target, store, renaming):
    store.dirs.add("/d")
    before = {"/f": LARGE, "/g": b"kept", "/d/f": b"kept"}
    store.files.update(before)
    fail_second(store, failing)
    with pytest.raises(ResourceExhaustedError, match="disk is full"):
        renaming.copy_file("mem://h/f", target)

    assert store.files == before


@pytest.mark.parametrize(("old", "also"), [({"/g": b"old"}, ("rename_file",)), ({}, ())])
def test_an_interrupt_at_any_point_leaves_no_unfinished_file(old, also):
    def begin():
        store = MemoryStore()
        store.files.update({"/f": b"new", **old})
        return store, filesystem_of(store, also=also)

    copied = {"/f": b"new", "/g": b"new"}
    copy = ("mem://h/f", "mem://h/g")
    for (store, _), more in interrupted(begin, lambda made: made[1].copy_file(*copy)):
        assert store.files in ({"/f": b"new", **old}, copied)
        assert more or store.files == copied


def test_an_old_target_is_written_itself_where_its_directory_takes_no_file(store, renaming):
    store.files.update({"/f": LARGE, "/g": b"old"})
    enter = store.enter

    def refuse_others(operation, uri):
        if operation == "new_writable_file" and uri != "mem://h/g":
            raise PermissionDeniedError("no new file here")
        return enter(operation, uri)

    store.enter = refuse_others
    renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": LARGE, "/g": LARGE}


def test_an_empty_target_stays_empty_and_the_same_file(store, renaming):
    """It may be a device, which must not become a file of its name."""
    store.files.update({"/f": LARGE, "/g": b""})
    fail_second(store, "append")
    with pytest.raises(ResourceExhaustedError):
        renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": LARGE, "/g": b""}
    assert calls(store, "rename_file", "delete_file") == []


@pytest.mark.parametrize("count", [-1, COPY_BLOCK + 1])
def test_a_count_that_no_reader_can_give_ends_the_copy(count, store, fs):
    store.files["/f"] = b"x"
    reader = fs.new_random_access_file("mem://h/f")
    reader.readinto = lambda offset, buffer: count
    fs.new_random_access_file = lambda _: reader
    with pytest.raises(InternalError, match="asked for"):
        fs.copy_file("mem://h/f", "mem://h/g")

    assert set(store.files) == {"/f"}


def test_a_source_that_ends_early_is_no_copy(store, fs):
    store.files.update({"/f": b"short", "/g": b"as it was"})
    reader = fs.new_random_access_file("mem://h/f")
    reader.known_length = lambda: 1000
    fs.new_random_access_file = lambda _: reader
    with pytest.raises(DataLossError, match="ended after 5 of 1000 bytes"):
        copy_through(fs, "mem://h/f", fs, "mem://h/g")

    assert store.files["/g"] == b"as it was"


def test_a_store_that_forgets_discarded_files_is_not_asked_about_the_target(store, fs):
    other = filesystem_of(store)
    other.plugin = "another store"
    other.is_object_store = True
    store.files["/f"] = b"x"
    copy_through(fs, "mem://h/f", other, "mem://h/g", is_landing=True)

    assert store.files["/g"] == b"x"
    assert calls(store, "stat", "path_exists", "delete_file", "rename_file") == []


# ---- rename_file ----


def test_a_rename_is_a_copy_and_a_deletion_that_leaves_both_where_it_fails(store, fs):
    store.files["/f"] = b"x"
    store.faults["delete_file", "/f"] = PermissionDeniedError("mine")
    with pytest.raises(PermissionDeniedError):
        fs.rename_file("mem://h/f", "mem://h/g")
    assert store.files == {"/f": b"x", "/g": b"x"}
    store.faults.clear()
    fs.rename_file("mem://h/f", "mem://h/g")

    assert store.files == {"/g": b"x"}


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        *(("f", target, FailedPreconditionError) for target in ("/d", "/d/", "/", "")),
        ("d", "/g", FailedPreconditionError),
        ("absent", "/g", NotFoundError),
        ("absent", "/absent", NotFoundError),
    ],
)
def test_a_rename_of_or_to_a_directory_is_refused_and_so_is_one_of_nothing(
    source, target, error, store, fs
):
    store.files["/f"] = b"x"
    store.dirs.add("/d")
    with pytest.raises(error, match="is a directory" if source == "f" else None):
        fs.rename_file(f"mem://h/{source}", f"mem://h{target}")

    assert (store.files, store.dirs) == ({"/f": b"x"}, {"/", "/d"})


# ---- trees ----


@pytest.fixture
def move_away(fs):
    """Move the tree /s to another store; return the failure."""

    def move(there):
        target = Location(filesystem_of(there), "mem://h/t")
        target.filesystem.plugin = "another"
        job = Job()
        assert not move_by_copy(job, Item(Location(fs, "mem://h/s"), target))
        return str(job.failures[0].error)

    return move


@pytest.mark.parametrize("is_object_store", [False, True])
def test_a_file_that_changes_before_its_copied_tree_is_removed_stays(
    store, fs, is_object_store, move_away
):
    fs.is_object_store = is_object_store
    store.dirs.add("/s")
    store.files.update({"/s/a": b"old", "/s/b": b"b"})
    there = MemoryStore()
    enter = there.enter

    def change(operation, uri):
        if (operation, uri) == ("close_writer", "/t/b"):
            store.files["/s/a"] = b"newer"
        return enter(operation, uri)

    there.enter = change
    assert "changed after it was copied" in move_away(there)
    assert store.files == {"/s/a": b"newer"}
    assert there.files == {"/t/a": b"old", "/t/b": b"b"}


def test_a_move_to_where_no_empty_directory_is_made_loses_none(store, move_away):
    store.dirs |= {"/s", "/s/empty"}
    store.files["/s/a"] = b"a"
    there = MemoryStore()
    make = there.create_dir
    there.create_dir = lambda uri: None if uri.endswith("/empty") else make(uri)

    assert "mem://h/s/empty is empty" in move_away(there)
    assert store.files == {"/s/a": b"a"}
    assert "/s/empty" in store.dirs


# ---- files of the disk: their modes, their links, their descriptors ----


@pytest.fixture
def disk_of(own_service, tmp_path):
    """Return a filesystem that serves the test's directory, and the URI of a name in it."""

    def serve(client):
        if client in ("", "file"):
            prefix = "file://" if client else ""
            return own_service.filesystem(client), lambda name: f"{prefix}{tmp_path}/{name}"
        disk, top = LocalFileSystem(), tmp_path
        if client != "fsspec":
            pyarrow_fs = pytest.importorskip("pyarrow.fs")
            disk = pyarrow_fs.LocalFileSystem()
            if client == "pyarrow below":
                disk, top = pyarrow_fs.SubTreeFileSystem(str(tmp_path), disk), ""
        own_service.register_filesystem("disk", disk)
        return own_service.filesystem("disk"), lambda name: f"disk://{top}/{name}"

    return serve


@pytest.mark.parametrize("client", ["", "file"])
def test_nobody_else_reads_what_replaces_a_private_file(client, store, fs, disk_of, tmp_path):
    """Neither while it arrives nor afterwards."""
    store.files["/f"] = b"secret"
    target = tmp_path / "key.pem"
    target.write_text("old")
    target.chmod(0o600)
    modes = []

    class Looking(CopyWatch):
        def advance(self, n_bytes):
            modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())

    disk, uri = disk_of(client)
    copy_through(fs, "mem://h/f", disk, uri("key.pem"), Looking(), is_landing=True)
    assert modes == [0o600, 0o600]  # of the file and of what is to replace it
    assert target.read_bytes() == b"secret"
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("client", ["", "file", "fsspec", "pyarrow", "pyarrow below"])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("is_link", [True, False])
def test_a_copy_writes_what_a_link_leads_to_and_keeps_the_mode(
    store, fs, tmp_path, disk_of, client, is_there, is_link
):
    store.files["/f"] = b"new"
    real, link = tmp_path / "real", tmp_path / "link"
    if is_link:
        link.symlink_to(real)
    if is_there:
        real.write_bytes(b"old")
        real.chmod(0o754)
    disk, uri = disk_of(client)
    copy_through(fs, "mem://h/f", disk, uri("link" if is_link else "real"))

    umask = os.umask(0)
    os.umask(umask)
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == (0o754 if is_there else 0o666 & ~umask)
    assert link.is_symlink() is is_link
    assert {path.name for path in tmp_path.iterdir()} == {"real", *(["link"] if is_link else [])}


def test_a_link_that_leads_out_of_what_a_client_serves_stays(store, fs, own_service, tmp_path):
    pyarrow_fs = pytest.importorskip("pyarrow.fs")
    store.files["/f"] = b"new"
    root, real = tmp_path / "root", tmp_path / "real"
    root.mkdir()
    real.write_bytes(b"old")
    (root / "link").symlink_to(real)
    served = pyarrow_fs.SubTreeFileSystem(str(root), pyarrow_fs.LocalFileSystem())
    own_service.register_filesystem("disk", served)
    disk = own_service.filesystem("disk")
    copy_through(fs, "mem://h/f", disk, "disk:///link")

    assert real.read_bytes() == b"new"
    with pytest.raises(KeyboardInterrupt):
        copy_through(fs, "mem://h/f", disk, "disk:///link", Interrupting())

    assert (root / "link").readlink() == real
    assert [path.name for path in root.iterdir()] == ["link"]


def test_a_shortage_of_descriptors_is_an_error_of_this_package(
    store, fs, service, tmp_path, monkeypatch
):
    def fail(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    store.files["/f"] = b"new"
    target, disk = tmp_path / "target", service.filesystem("")
    copy_through(fs, "mem://h/f", disk, str(target))  # imports what it needs
    target.write_text("old")
    for work in (
        lambda: copy_through(fs, "mem://h/f", disk, str(target)),
        lambda: HeldWriter("zz://new", lambda: None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", fail)
            with pytest.raises(ResourceExhaustedError) as caught:
                work()
        assert caught.value.operation == "new_writable_file"

    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
