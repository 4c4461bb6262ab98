"""The host's own copy and rename: they end, tear nothing, and keep what they copy."""

from __future__ import annotations

import contextlib
import sys
from itertools import count
from pathlib import Path

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
from modular_tf.filesystem import copying
from modular_tf.filesystem.copying import COPY_BLOCK, CopyWatch, copy_through
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.local_files import local
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.trees import Copying, Item, move_by_copy
from tests.filesystem.memory_store import MemoryStore, filesystem_of

_LARGE = bytes(range(256)) * (COPY_BLOCK // 256) * 2 + b"end"


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def fs(store):
    return filesystem_of(store)


def _calls(store, *operations):
    return [call for call in store.calls if call[0] in operations]


# ---- copy_file ----


def test_a_copy_is_equal(store, fs):
    for content in (b"", b"x", _LARGE):
        store.files["/f"] = content
        fs.copy_file("mem://h/f", "mem://h/g")
        assert store.files["/g"] == content


def test_a_copy_replaces_all_of_its_target(store, fs):
    store.files.update({"/f": b"new", "/g": b"much longer"})
    fs.copy_file("mem://h/f", "mem://h/g")

    assert store.files["/g"] == b"new"


def test_a_directory_is_copied_into(store, fs):
    store.files["/f"] = b"x"
    store.dirs.add("/d")
    fs.copy_file("mem://h/f", "mem://h/d")
    fs.copy_file("mem://h/f", "mem://h/d/")

    assert store.files["/d/f"] == b"x"


@pytest.mark.parametrize("target", ["mem://h/f", "mem://h/./f", "mem://h//f", "mem://h/d/../f"])
def test_a_copy_onto_itself_changes_nothing(target, store, fs):
    store.files["/f"] = b"kept"
    fs.copy_file("mem://h/f", target)

    assert store.files == {"/f": b"kept"}
    assert _calls(store, "new_writable_file") == []


def test_a_copy_into_its_own_directory_changes_nothing(store, fs):
    store.files["/f"] = b"kept"
    fs.copy_file("mem://h/f", "mem://h/")

    assert store.files == {"/f": b"kept"}


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


def test_a_torn_copy_is_removed(store, fs):
    store.files["/f"] = _LARGE
    append, done = store.enter, []

    def fail_later(operation, uri):
        if operation == "append":
            done.append(uri)
            if len(done) == 2:
                raise ResourceExhaustedError("the disk is full")
        return append(operation, uri)

    store.enter = fail_later
    with pytest.raises(ResourceExhaustedError, match="disk is full"):
        fs.copy_file("mem://h/f", "mem://h/g")

    assert set(store.files) == {"/f"}
    assert ("close_reader", "/f") in store.calls


@pytest.fixture
def renaming(store):
    """A filesystem on the store that has a rename, and no copy."""
    return filesystem_of(store, also=("rename_file",))


def _fail_second(store, failing, error):
    """Let the second call of an operation fail, or the first where there is one only."""
    enter, seen = store.enter, []

    def fail_later(operation, uri):
        if operation == failing:
            seen.append(uri)
            if operation != "append" or len(seen) == 2:
                raise error
        return enter(operation, uri)

    store.enter = fail_later


@pytest.mark.parametrize(
    "failing", ["new_writable_file", "read", "append", "close_writer", "rename_file"]
)
def test_a_copy_that_fails_leaves_an_old_target_as_it_was(failing, store, renaming):
    store.files.update({"/f": _LARGE, "/g": b"kept"})
    _fail_second(store, failing, ResourceExhaustedError("the disk is full"))
    with pytest.raises(ResourceExhaustedError, match="disk is full"):
        renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": _LARGE, "/g": b"kept"}


def _is_interrupted(step, call):
    """Return whether a call was interrupted before this step of the copying code."""
    steps = count()

    def trace(frame, event, _):
        if frame.f_code.co_filename not in {copying.__file__, contextlib.__file__}:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(steps) == step:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_at_any_step_leaves_no_unfinished_file():
    for step in count():
        store = MemoryStore()
        fs = filesystem_of(store, also=("rename_file",))
        store.files.update({"/f": b"new", "/g": b"old"})
        if not _is_interrupted(step, lambda: fs.copy_file("mem://h/f", "mem://h/g")):  # noqa: B023
            break
        assert store.files in ({"/f": b"new", "/g": b"old"}, {"/f": b"new", "/g": b"new"})
    assert step > 100
    assert store.files["/g"] == b"new"


def test_an_old_target_is_written_itself_where_its_directory_takes_no_file(store, renaming):
    store.files.update({"/f": _LARGE, "/g": b"old"})
    enter = store.enter

    def refuse_others(operation, uri):
        if operation == "new_writable_file" and uri != "mem://h/g":
            raise PermissionDeniedError("no new file here")
        return enter(operation, uri)

    store.enter = refuse_others
    renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": _LARGE, "/g": _LARGE}


def test_an_old_target_in_a_directory_stays_too(store, renaming):
    store.dirs.add("/d")
    store.files.update({"/f": _LARGE, "/d/f": b"kept"})
    _fail_second(store, "append", ResourceExhaustedError("the disk is full"))
    with pytest.raises(ResourceExhaustedError):
        renaming.copy_file("mem://h/f", "mem://h/d")

    assert store.files == {"/f": _LARGE, "/d/f": b"kept"}


def test_an_old_target_is_replaced_by_one_rename(store, renaming):
    store.files.update({"/f": _LARGE, "/g": b"old"})
    renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": _LARGE, "/g": _LARGE}
    assert ("new_writable_file", "mem://h/g") not in store.calls
    assert len(_calls(store, "rename_file")) == 1


def test_a_new_target_needs_no_rename(store, renaming):
    store.files["/f"] = _LARGE
    renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files["/g"] == _LARGE
    assert _calls(store, "rename_file") == []


def test_an_empty_target_stays_empty_and_the_same_file(store, renaming):
    """It may be a device, which must not become a file of its name."""
    store.files.update({"/f": _LARGE, "/g": b""})
    _fail_second(store, "append", ResourceExhaustedError("the disk is full"))
    with pytest.raises(ResourceExhaustedError):
        renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": _LARGE, "/g": b""}
    assert _calls(store, "rename_file", "delete_file") == []


def test_a_rename_that_is_a_copy_after_all_ends(store, renaming):
    store.files.update({"/f": b"new", "/g": b"old"})
    renaming.rename_file = lambda source, target: Filesystem.rename_file(renaming, source, target)
    renaming.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": b"new", "/g": b"new"}


def test_without_a_rename_a_torn_target_is_removed(store, fs):
    """Half a file is worse than none; that the old one stays needs a rename."""
    store.files.update({"/f": _LARGE, "/g": b"old"})
    _fail_second(store, "append", ResourceExhaustedError("the disk is full"))
    with pytest.raises(ResourceExhaustedError):
        fs.copy_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": _LARGE}


def test_a_copy_that_cannot_be_closed_is_removed(store, fs):
    store.files["/f"] = b"x"
    store.faults["close_writer", "/g"] = DataLossError("refused")
    with pytest.raises(DataLossError, match="refused"):
        fs.copy_file("mem://h/f", "mem://h/g")

    assert set(store.files) == {"/f"}


@pytest.mark.parametrize("count", [-1, COPY_BLOCK + 1])
def test_a_count_that_no_reader_can_give_ends_the_copy(count, store, fs):
    store.files["/f"] = b"x"
    open_reader = fs.new_random_access_file

    def lying(uri):
        reader = open_reader(uri)
        reader.readinto = lambda offset, buffer: count
        return reader

    fs.new_random_access_file = lying
    with pytest.raises(InternalError, match="asked for"):
        fs.copy_file("mem://h/f", "mem://h/g")

    assert set(store.files) == {"/f"}


def test_a_copy_between_filesystems_of_one_path_is_no_copy_onto_itself(store, fs):
    other = MemoryStore()
    store.files["/f"] = _LARGE
    copy_through(fs, "mem://h/f", filesystem_of(other), "mem://h/f")

    assert other.files["/f"] == _LARGE


# ---- rename_file ----


def test_a_rename_is_a_copy_and_a_deletion(store, fs):
    store.files["/f"] = b"x"
    fs.rename_file("mem://h/f", "mem://h/g")

    assert store.files == {"/g": b"x"}


def test_a_rename_that_cannot_delete_leaves_both(store, fs):
    store.files["/f"] = b"x"
    store.faults["delete_file", "/f"] = PermissionDeniedError("mine")
    with pytest.raises(PermissionDeniedError):
        fs.rename_file("mem://h/f", "mem://h/g")

    assert store.files == {"/f": b"x", "/g": b"x"}


@pytest.mark.parametrize("target", ["mem://h/d", "mem://h/d/", "mem://h/", "mem://h"])
def test_a_directory_is_no_target_of_a_rename(target, store, fs):
    store.files["/f"] = b"x"
    store.dirs.add("/d")
    with pytest.raises(FailedPreconditionError, match="is a directory"):
        fs.rename_file("mem://h/f", target)

    assert store.files == {"/f": b"x"}


def test_a_directory_cannot_be_renamed_by_default(store, fs):
    store.dirs.add("/d")
    with pytest.raises(FailedPreconditionError):
        fs.rename_file("mem://h/d", "mem://h/g")

    assert store.dirs == {"/", "/d"}


@pytest.mark.parametrize("target", ["mem://h/f", "mem://h/./f", "mem://h//f"])
def test_a_file_renamed_to_itself_stays(target, store, fs):
    store.files["/f"] = b"x"
    fs.rename_file("mem://h/f", target)

    assert store.files == {"/f": b"x"}


def test_what_is_not_there_cannot_be_renamed(store, fs):
    for target in ("mem://h/g", "mem://h/absent"):
        with pytest.raises(NotFoundError):
            fs.rename_file("mem://h/absent", target)

    assert store.files == {}


class _Told:
    """A reader of a user's, which is no subclass of ours, and says how long it is or not."""

    def __init__(self, content, length):
        self._content = content
        self.uri = "mem://h/f"
        self.reads = 0
        if length is not None:
            self.known_length = lambda: length

    def readinto(self, offset, buffer):
        self.reads += 1
        data = self._content[offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        pass

    __enter__ = lambda self: self  # noqa: E731
    __exit__ = lambda self, *_: self.close()  # noqa: E731


@pytest.mark.parametrize("length", [None, len(_LARGE)])
def test_the_end_of_a_source_takes_no_read_of_its_own(store, fs, length):
    reader = _Told(_LARGE, length)
    fs.implementation.new_random_access_file = lambda uri: reader
    copy_through(fs, "mem://h/f", fs, "mem://h/g", is_landing=True)

    assert store.files["/g"] == _LARGE
    assert reader.reads == 3  # two blocks, and a short one
    assert _calls(store, "is_directory") == []


def test_a_source_that_ends_early_is_no_copy(store, fs):
    store.files["/g"] = b"as it was"
    fs.implementation.new_random_access_file = lambda uri: _Told(b"short", 1000)
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
    assert _calls(store, "stat", "path_exists", "delete_file", "rename_file") == []


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_nobody_else_reads_what_replaces_a_private_file(scheme, service, tmp_path):
    """Neither while it arrives nor afterwards."""
    target, ram = tmp_path / "key.pem", service.filesystem("ram")
    target.write_text("old")
    target.chmod(0o600)
    with ram.new_writable_file("ram://key") as file:
        file.append(b"secret")
    modes = []

    class Looking(CopyWatch):
        def advance(self, n_bytes):
            modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())

    filesystem = service.filesystem(scheme.partition(":")[0])
    copy_through(ram, "ram://key", filesystem, f"{scheme}{target}", Looking(), is_landing=True)
    assert modes == [0o600, 0o600]  # of the file and of what is to replace it
    assert target.read_bytes() == b"secret"
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("scheme", ["", "disk://"])
def test_a_file_that_is_replaced_keeps_its_mode(scheme, service, tmp_path):
    service.register_filesystem("disk", LocalFileSystem())
    target, ram = tmp_path / "script", service.filesystem("ram")
    target.write_text("old")
    target.chmod(0o754)
    with ram.new_writable_file("ram://script") as file:
        file.append(b"new")
    filesystem = service.filesystem(scheme.partition(":")[0])
    copy_through(ram, "ram://script", filesystem, f"{scheme}{target}", is_landing=True)
    assert target.stat().st_mode & 0o777 == 0o754


_NO_DESCRIPTOR = """
import os, resource, sys
from modular_tf.errors import ResourceExhaustedError
from modular_tf.filesystem.copying import copy_through
from modular_tf.filesystem.held_writer import HeldWriter
from modular_tf.service.service import PluginService

target = sys.argv[1]
with PluginService() as service:
    service.load()
    ram, disk = service.filesystem_for("ram://new"), service.filesystem_for(target)
    with ram.new_writable_file("ram://new") as file:
        file.append(b"new")
    copy_through(ram, "ram://new", disk, target)  # loads what it needs
    with open(target, "w") as file:
        file.write("old")
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for work in (
        lambda: copy_through(ram, "ram://new", disk, target),
        lambda: HeldWriter("zz://new", lambda: None),
    ):
        try:
            work()
        except ResourceExhaustedError as error:
            print(error.operation)
    for descriptor in taken:
        os.close(descriptor)
"""


def test_a_shortage_of_descriptors_is_told_by_an_error_of_this_package(run_python, tmp_path):
    target = tmp_path / "target"
    target.write_text("old")

    done = run_python(_NO_DESCRIPTOR, str(target))

    assert done.stdout.split() == ["new_writable_file"] * 2
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_tree_whose_file_meets_a_directory_replaces_nothing_in_it(store, fs):
    store.dirs.update({"/s", "/t", "/t/x"})
    store.files.update({"/s/x": b"new", "/t/x/x": b"old"})
    job = Job()
    Copying(job).run([Item(Location(fs, "mem://h/s"), Location(fs, "mem://h/t"))])

    assert [failure.uri for failure in job.failures] == ["mem://h/s/x"]
    assert store.files == {"/s/x": b"new", "/t/x/x": b"old"}


@pytest.mark.parametrize("is_object_store", [False, True])
def test_a_file_that_changes_before_its_copied_tree_is_removed_stays(store, fs, is_object_store):
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
    job = Job()
    target = Location(filesystem_of(there), "mem://h/t")
    target.filesystem.plugin = "another"
    moved = move_by_copy(job, Item(Location(fs, "mem://h/s"), target))

    assert not moved
    assert "changed after it was copied" in str(job.failures[0].error)
    assert store.files == {"/s/a": b"newer"}
    assert there.files == {"/t/a": b"old", "/t/b": b"b"}


def test_a_move_to_where_no_empty_directory_is_made_loses_none(store, fs):
    store.dirs |= {"/s", "/s/empty"}
    store.files["/s/a"] = b"a"
    there = MemoryStore()
    make = there.create_dir
    there.create_dir = lambda uri: None if uri.endswith("/empty") else make(uri)
    target = Location(filesystem_of(there), "mem://h/t")
    target.filesystem.plugin = "another"
    job = Job()

    assert not move_by_copy(job, Item(Location(fs, "mem://h/s"), target))
    assert "mem://h/s/empty is empty" in str(job.failures[0].error)
    assert store.files == {"/s/a": b"a"}
    assert "/s/empty" in store.dirs


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_copy_through_a_link_writes_its_target(store, fs, service, tmp_path, is_there, scheme):
    store.files["/f"] = b"new"
    link, real = tmp_path / "link", tmp_path / "real"
    link.symlink_to(real)
    if is_there:
        real.write_bytes(b"old")
    target = f"{scheme}{link}"
    copy_through(fs, "mem://h/f", service.filesystem_for(target), target)

    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"link", "real"}


@pytest.mark.parametrize("client", ["fsspec", "pyarrow", "pyarrow below"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_copy_through_a_link_of_a_client_writes_its_target(
    store, fs, service, tmp_path, is_there, client
):
    store.files["/f"] = b"new"
    link, real = tmp_path / "link", tmp_path / "real"
    link.symlink_to(real)
    if is_there:
        real.write_bytes(b"old")
        real.chmod(0o640)
    target = f"disk://{link}"
    if client == "fsspec":
        service.register_filesystem("disk", LocalFileSystem())
    else:
        pyarrow_fs = pytest.importorskip("pyarrow.fs")
        disk = pyarrow_fs.LocalFileSystem()
        if client == "pyarrow below":
            disk, target = pyarrow_fs.SubTreeFileSystem(str(tmp_path), disk), "disk:///link"
        service.register_filesystem("disk", disk)
    copy_through(fs, "mem://h/f", service.filesystem("disk"), target)

    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    if is_there:
        assert real.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"link", "real"}


def test_a_link_that_leads_out_of_what_a_client_serves_stays(store, fs, service, tmp_path):
    pyarrow_fs = pytest.importorskip("pyarrow.fs")
    store.files["/f"] = b"new"
    root, real = tmp_path / "root", tmp_path / "real"
    root.mkdir()
    real.write_bytes(b"old")
    (root / "link").symlink_to(real)
    served = pyarrow_fs.SubTreeFileSystem(str(root), pyarrow_fs.LocalFileSystem())
    service.register_filesystem("disk", served)
    disk = service.filesystem("disk")
    copy_through(fs, "mem://h/f", disk, "disk:///link")

    assert real.read_bytes() == b"new"

    class Failing(CopyWatch):
        def advance(self, n_bytes):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_through(fs, "mem://h/f", disk, "disk:///link", Failing())

    assert (root / "link").readlink() == real
    assert [path.name for path in root.iterdir()] == ["link"]


def test_a_failed_copy_through_a_link_that_leads_nowhere_leaves_the_link_alone(
    store, fs, service, tmp_path
):
    store.files["/f"] = b"new"
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")

    class Failing(CopyWatch):
        def advance(self, n_bytes):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_through(fs, "mem://h/f", service.filesystem("file"), f"file://{link}", Failing())

    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_an_interrupt_when_the_target_was_made_leaves_no_empty_file(store, fs):
    opened = fs.new_writable_file

    def interrupted(uri):
        opened(uri)
        raise KeyboardInterrupt

    store.files["/f"] = b"new"
    fs.new_writable_file = interrupted
    with pytest.raises(KeyboardInterrupt):
        copy_through(fs, "mem://h/f", fs, "mem://h/g")

    assert store.files == {"/f": b"new"}


@pytest.mark.parametrize("opener", ["new_random_access_file", "new_writable_file"])
def test_a_file_of_this_machine_that_nobody_took_is_closed(tmp_path, opener):
    path = tmp_path / "f"
    path.touch()
    before = len([*Path("/proc/self/fd").iterdir()])
    getattr(local(path).filesystem, opener)(str(path))

    assert len([*Path("/proc/self/fd").iterdir()]) == before
