"""`FsspecOps`: the operations of TF_FilesystemOps on fsspec's own memory and local filesystems."""

from __future__ import annotations

import re
import time
import warnings
from datetime import datetime

import pyarrow.fs
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from modular_tf import IncompleteListingWarning, errors, gfile
from modular_tf.filesystem.fsspec_bridge import FsspecOps, is_of_fsspec
from modular_tf.filesystem.obstore_ops import ObstoreOps
from modular_tf.filesystem.pyarrow_ops import PyarrowOps
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService


@pytest.fixture(params=["memory", "local", "pyarrow", "pyarrow below a path", "obstore"])
def ops(request, tmp_path):
    """The bridge over an empty filesystem, and the URI of a directory in it."""
    disk = pyarrow.fs.LocalFileSystem()
    if request.param == "local":
        bridge, base = FsspecOps(LocalFileSystem()), f"zz://{tmp_path}/base"
    elif request.param == "pyarrow":
        bridge, base = PyarrowOps(disk), f"zz://{tmp_path}/base"
    elif request.param == "pyarrow below a path":
        bridge, base = PyarrowOps(pyarrow.fs.SubTreeFileSystem(str(tmp_path), disk)), "zz://base"
    elif request.param == "obstore":
        store = request.getfixturevalue("obstore").store.LocalStore(str(tmp_path))
        bridge, base = ObstoreOps(store), "zz://base"
    else:
        memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        bridge, base = FsspecOps(memory), "zz://base"
    bridge.create_dir(base)
    return bridge, base


def write(bridge, uri, data):
    with bridge.new_writable_file(uri) as file:
        file.append(data)


def read(bridge, uri):
    with bridge.new_random_access_file(uri) as file:
        return file.read(0, 1000)


of_disks = pytest.mark.parametrize(
    "ops", ["local", "pyarrow", "pyarrow below a path", "obstore"], indirect=True
)


@of_disks
def test_removing_a_tree_leaves_what_its_links_lead_to(ops, tmp_path):
    bridge, base = ops
    folder = tmp_path / "base"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"stays")
    (folder / "tree/sub").mkdir(parents=True)
    (folder / "tree/sub/link").symlink_to(outside)
    (folder / "tree/a").write_bytes(b"x")
    (folder / "link").symlink_to(outside)
    (folder / "link-to-file").symlink_to(outside / "file")
    for name in ("tree", "link", "link-to-file"):
        bridge.delete_recursively(f"{base}/{name}")

    assert [*folder.iterdir()] == []
    assert (outside / "file").read_bytes() == b"stays"


@pytest.mark.parametrize("kind", ["fsspec", "obstore", "pyarrow"])
def test_the_root_of_the_machine_is_not_removed(kind, request, monkeypatch):
    def whole_disk():
        if kind == "fsspec":
            return FsspecOps(LocalFileSystem())
        if kind == "obstore":
            return ObstoreOps(request.getfixturevalue("obstore").store.LocalStore())
        return PyarrowOps(pyarrow.fs.LocalFileSystem())

    ops = whole_disk()
    removed = []
    monkeypatch.setattr(type(ops), "_remove_tree", lambda _, path: removed.append(path))
    with pytest.raises(errors.FailedPreconditionError, match="the root of all files"):
        ops.delete_recursively("mine:///")
    assert removed == []


@of_disks
def test_a_file_that_is_copied_onto_itself_in_a_directory_stays(ops, tmp_path):
    bridge, base = ops
    folder = tmp_path / "base"
    for name in ("one", "other"):
        (folder / name).mkdir()
    (folder / "one/a").write_bytes(b"data")
    (folder / "other/a").hardlink_to(folder / "one/a")
    (folder / "link").symlink_to(folder / "one")
    for directory in ("one", "link", "other"):
        bridge.copy_file(f"{base}/one/a", f"{base}/{directory}")

    assert (folder / "one/a").read_bytes() == b"data"
    assert [path.name for path in folder.glob("*/*")] == ["a"] * 3


@of_disks
def test_a_file_that_is_renamed_to_a_link_to_it_replaces_the_link(ops, tmp_path):
    bridge, base = ops
    folder = tmp_path / "base"
    (folder / "a").write_bytes(b"data")
    (folder / "b").symlink_to(folder / "a")
    bridge.rename_file(f"{base}/a", f"{base}/b")

    assert [path.name for path in folder.iterdir()] == ["b"]
    assert not (folder / "b").is_symlink()
    assert (folder / "b").read_bytes() == b"data"


def test_a_file_comes_back_byte_for_byte(ops):
    bridge, base = ops
    write(bridge, f"{base}/a", b"0123456789")

    with bridge.new_random_access_file(f"{base}/a") as file:
        buffer = bytearray(4)

        assert file.read(2, 3) == b"234"
        assert file.readinto(8, buffer) == 2
        assert buffer == b"89\0\0"
        assert file.read(10, 5) == b""
        assert file.read(99, 5) == b""


def test_appends_continue_an_existing_file_and_create_a_missing_one(ops):
    bridge, base = ops
    for data in (b"one", b"two"):
        with bridge.new_appendable_file(f"{base}/log") as file:
            file.append(data)

    assert read(bridge, f"{base}/log") == b"onetwo"


@pytest.mark.parametrize("refusal", [ValueError, NotImplementedError])
def test_a_client_that_cannot_append_creates_a_file_and_names_what_can(refusal):
    class NeverAppends(MemoryFileSystem):
        def open(self, path, mode="rb", **options):
            if mode == "ab":
                raise refusal("only 'rb' and 'wb'")
            return super().open(path, mode, **options)

    bridge = FsspecOps(NeverAppends(global_store=False, skip_instance_cache=True))
    with bridge.new_appendable_file("zz://log") as file:
        file.append(b"one")
    with pytest.raises(errors.UnimplementedError, match=r"only 'rb'.*register an obstore store"):
        bridge.new_appendable_file("zz://log")

    assert read(bridge, "zz://log") == b"one"


def test_opening_for_writing_empties(ops):
    bridge, base = ops
    write(bridge, f"{base}/a", b"long contents")
    write(bridge, f"{base}/a", b"short")

    assert read(bridge, f"{base}/a") == b"short"


def test_a_region_holds_the_whole_file_and_cannot_be_written(ops):
    bridge, base = ops
    write(bridge, f"{base}/a", b"region")

    with bridge.new_read_only_memory_region_from_file(f"{base}/a") as region:
        view = region.view()

        assert bytes(view) == b"region"
        assert len(region) == 6
        assert view.readonly
    with pytest.raises(errors.ClosedError):
        region.view()


def test_use_after_close_is_an_error(ops):
    bridge, base = ops
    write(bridge, f"{base}/a", b"x")
    reader = bridge.new_random_access_file(f"{base}/a")
    writer = bridge.new_writable_file(f"{base}/b")
    for file in (reader, writer):
        file.close()
        file.close()

    with pytest.raises(errors.ClosedError):
        reader.read(0, 1)
    with pytest.raises(errors.ClosedError):
        writer.append(b"x")


def test_stat_tells_size_kind_and_time(ops):
    bridge, base = ops
    write(bridge, f"{base}/a", b"12345")

    facts = bridge.stat(f"{base}/a")

    assert (facts.length, facts.is_directory) == (5, False)
    assert facts.mtime_nsec > 1_500_000_000 * 10**9  # later than 2017: really nanoseconds
    assert bridge.stat(base).is_directory


def test_children_are_names_in_order(ops):
    bridge, base = ops
    for name in ("b", "a"):
        write(bridge, f"{base}/{name}", b"")
    bridge.create_dir(f"{base}/dir")

    assert bridge.get_children(base) == ["a", "b", "dir"]
    assert bridge.get_children(f"{base}/dir") == []


def test_what_is_missing_is_not_found(ops):
    bridge, base = ops
    missing = f"{base}/missing"

    assert not bridge.path_exists(missing)
    for operation in (
        bridge.stat,
        bridge.is_directory,
        bridge.new_random_access_file,
        bridge.new_read_only_memory_region_from_file,
        bridge.delete_file,
        bridge.delete_dir,
        bridge.delete_recursively,
        bridge.get_children,
    ):
        with pytest.raises(errors.NotFoundError) as caught:
            operation(missing)
        assert caught.value.path == missing
        assert caught.value.operation == operation.__name__


def test_the_wrong_kind_is_refused(ops):
    bridge, base = ops
    write(bridge, f"{base}/file", b"")

    for operation, uri in (
        (bridge.get_children, f"{base}/file"),
        (bridge.delete_dir, f"{base}/file"),
        (bridge.delete_file, base),
        (bridge.new_random_access_file, base),
        (bridge.delete_dir, base),  # not empty
    ):
        with pytest.raises(errors.FailedPreconditionError):
            operation(uri)
    assert bridge.path_exists(f"{base}/file")


def test_directories_are_made_once(ops):
    bridge, base = ops
    bridge.recursively_create_dir(f"{base}/x/y/z")
    bridge.recursively_create_dir(f"{base}/x/y/z")

    assert bridge.is_directory(f"{base}/x/y")
    with pytest.raises(errors.AlreadyExistsError):
        bridge.create_dir(f"{base}/x")


def test_rename_and_copy_replace_a_file_and_enter_a_directory(ops):
    bridge, base = ops
    write(bridge, f"{base}/a", b"A")
    write(bridge, f"{base}/b", b"B")
    bridge.create_dir(f"{base}/dir")

    bridge.copy_file(f"{base}/a", f"{base}/b")
    bridge.copy_file(f"{base}/a", f"{base}/dir")
    bridge.rename_file(f"{base}/a", f"{base}/c")

    assert bridge.get_children(base) == ["b", "c", "dir"]
    assert read(bridge, f"{base}/b") == b"A"
    assert read(bridge, f"{base}/dir/a") == b"A"


@pytest.mark.parametrize("name", ["a", "a[1]"])
def test_a_file_stays_in_the_directory_that_it_is_moved_or_copied_to(ops, name):
    bridge, base = ops
    write(bridge, f"{base}/{name}", b"A")
    bridge.rename_file(f"{base}/{name}", base)
    bridge.copy_file(f"{base}/{name}", base)

    assert read(bridge, f"{base}/{name}") == b"A"


def test_names_that_look_like_patterns_are_names(ops):
    bridge, base = ops
    for name in ("x[1]", "x1"):
        write(bridge, f"{base}/{name}", name.encode())
    bridge.recursively_create_dir(f"{base}/d*/e")
    bridge.create_dir(f"{base}/dd")

    bridge.rename_file(f"{base}/x[1]", f"{base}/y[1]")
    bridge.delete_recursively(f"{base}/d*")

    assert bridge.get_children(base) == ["dd", "x1", "y[1]"]
    assert read(bridge, f"{base}/y[1]") == b"x[1]"


def test_a_tree_is_deleted_with_all_that_is_in_it(ops):
    bridge, base = ops
    bridge.recursively_create_dir(f"{base}/x/y")
    write(bridge, f"{base}/x/y/f", b"")

    assert tuple(bridge.delete_recursively(f"{base}/x")) == (0, 0)
    assert bridge.get_children(base) == []


def test_only_fsspec_filesystems_are_taken_for_such():
    assert is_of_fsspec(MemoryFileSystem(), "AbstractFileSystem")
    assert not is_of_fsspec(object(), "AbstractFileSystem")
    assert not is_of_fsspec(MemoryFileSystem, "AbstractFileSystem")


def test_the_bridge_itself_does_not_import_fsspec(run_python):
    run_python(
        """
        import sys
        import modular_tf.filesystem.fsspec_bridge as bridge
        assert not bridge.is_of_fsspec(3, "AbstractFileSystem")
        assert "fsspec" not in sys.modules
        """
    )


class Failing(MemoryFileSystem):
    """Raises `failure` whatever it is asked."""

    cachable = False
    failure: Exception

    def info(self, path, **kwargs):
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (PermissionError("no"), errors.PermissionDeniedError),
        (TimeoutError("late"), errors.DeadlineExceededError),
        (ConnectionResetError("gone"), errors.UnavailableError),
        (NotImplementedError("never"), errors.UnimplementedError),
        (OSError(28, "full"), errors.ResourceExhaustedError),
        (OSError(5, "broken"), errors.DataLossError),
        (ValueError("odd"), errors.InvalidArgumentError),
        (KeyError("what"), errors.UnknownError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_failures_become_our_errors_and_are_never_taken_for_absence(failure, expected):
    fs = Failing()
    fs.failure = failure

    with pytest.raises(expected) as caught:
        FsspecOps(fs).path_exists("zz://a")
    assert type(caught.value) is expected
    assert caught.value.__cause__ is failure


def make_tree(bridge, directory):
    """Make a directory with files, one below the other; return them by the name within it."""
    files = {"f": b"1", "[x]*?": b"2", "sub/g": b"3", "sub/deep [1]/h": b"4"}
    for below in ("", "/sub", "/sub/deep [1]", "/sub/empty"):
        bridge.create_dir(f"{directory}{below}")
    for name, data in files.items():
        write(bridge, f"{directory}/{name}", data)
    return files


def found_in(bridge, directory):
    return {
        name: read(bridge, f"{directory}/{name}")
        for name in ("f", "[x]*?", "sub/g", "sub/deep [1]/h")
        if bridge.path_exists(f"{directory}/{name}")
    }


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("a[1]", "b"), ("a", "b*"), ("a?", "[b]")])
def test_directories_of_any_name_are_renamed(ops, old, new):
    bridge, base = ops
    files = make_tree(bridge, f"{base}/{old}")
    bridge.rename_file(f"{base}/{old}", f"{base}/{new}")

    assert bridge.get_children(base) == [new]
    assert found_in(bridge, f"{base}/{new}") == files
    assert bridge.get_children(f"{base}/{new}/sub") == ["deep [1]", "empty", "g"]


def test_a_rename_of_a_directory_that_fails_leaves_it_as_it_was(monkeypatch):
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    bridge, copy = FsspecOps(memory), memory.cp_file
    files = make_tree(bridge, "zz://a")

    def failing(source, target, **options):
        if source.endswith("/g"):
            raise OSError("it broke off")
        copy(source, target, **options)

    monkeypatch.setattr(memory, "cp_file", failing)
    with pytest.raises(errors.ModularTFError, match="it broke off"):
        bridge.rename_file("zz://a", "zz://b")
    assert found_in(bridge, "zz://a") == files
    assert not bridge.path_exists("zz://b")


def test_an_interrupted_rename_leaves_what_others_have_put_where_it_had_not_begun(monkeypatch):
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    bridge, copy = FsspecOps(memory), memory.cp_file
    files = make_tree(bridge, "zz://a")

    def interrupted(source, target, **options):
        copy(source, target, **options)
        if source.endswith("/f"):
            memory.pipe_file("/b/sub/g", b"of another")
            raise KeyboardInterrupt

    monkeypatch.setattr(memory, "cp_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bridge.rename_file("zz://a", "zz://b")
    assert found_in(bridge, "zz://a") == files
    assert found_in(bridge, "zz://b") == {"sub/g": b"of another"}


def test_a_file_that_comes_into_a_directory_while_it_is_renamed_stays(monkeypatch):
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    bridge, remove = FsspecOps(memory), memory.rm_file
    files = make_tree(bridge, "zz://a")

    def removing(path):
        if not memory.exists("/a/sub/late"):
            memory.pipe_file("/a/sub/late", b"late")
        remove(path)

    monkeypatch.setattr(memory, "rm_file", removing)
    with pytest.raises(errors.FailedPreconditionError, match="not empty"):
        bridge.rename_file("zz://a", "zz://b")
    assert found_in(bridge, "zz://b") == files
    assert read(bridge, "zz://a/sub/late") == b"late"


@pytest.mark.parametrize("target", ["a/inside", "a"])
def test_a_directory_is_not_renamed_into_itself(ops, target):
    bridge, base = ops
    files = make_tree(bridge, f"{base}/a")
    with pytest.raises(errors.FailedPreconditionError):
        bridge.rename_file(f"{base}/a", f"{base}/{target}")
    assert found_in(bridge, f"{base}/a") == files


@pytest.mark.parametrize("when", ["2024-01-01T00:00:00", datetime(2024, 1, 1)])  # noqa: DTZ001
def test_a_time_without_a_zone_is_of_utc(when, monkeypatch):
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        memory.pipe_file("/f", b"")
        info = {"name": "/f", "type": "file", "size": 0, "LastModified": when}
        monkeypatch.setattr(memory, "info", lambda _path: info)
        assert FsspecOps(memory).stat("zz://f").mtime_nsec == 1_704_067_200 * 10**9
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_wrapped_filesystem_of_pyarrow_is_read(tmp_path):
    bridge = FsspecOps(ArrowFSWrapper(pyarrow.fs.LocalFileSystem()))
    write(bridge, f"zz://{tmp_path}/f", b"0123456789")
    with bridge.new_random_access_file(f"zz://{tmp_path}/f") as file:
        assert [file.read(0, 4), file.read(3, 100), file.read(50, 1)] == [b"0123", b"3456789", b""]


class _ListsBelow(MemoryFileSystem):
    """Lists what lies below the name of an object, as clients of stores do."""

    def ls(self, path, detail=True, **options):
        path = self._strip_protocol(path)
        is_above = any(key.startswith(f"{path}/") for key in self.store)
        hidden = self.store.pop(path, None) if is_above else None
        try:
            return super().ls(path, detail, **options)
        finally:
            if hidden is not None:
                self.store[path] = hidden


@pytest.fixture
def served_keys():
    """A service of a store whose keys are names of files and of directories, and parts of both."""
    memory = _ListsBelow(global_store=False, skip_instance_cache=True)
    keys = ("/both/two", "/both/two/child", "/both/plain", "/dots/../y", "/dots/ok")
    for key in (*keys, "/beside/a", "/beside//b", "/both-too//two", "/usual/a"):
        memory.store[key] = MemoryFile(memory, key, key.encode())
    with PluginService(bundled=False) as service:
        service.register_filesystem("zz", memory)
        yield service


def test_a_listing_tells_what_no_path_leads_to(served_keys):
    fs = served_keys.filesystem_for("zz://both")

    names, unnamed, both, statistics = fs.listing("zz://both")
    assert "two" not in statistics
    assert (names, unnamed, both) == (["plain", "two"], (), {"two"})
    assert "'two' is a file and a directory" in fs.listing("zz://both").left_out[0]
    assert fs.listing("zz://dots")[:3] == (["ok"], ("..",), frozenset())
    assert fs.listing("zz://beside")[:3] == (["a"], ("",), frozenset())
    assert fs.listing("zz://both-too")[:3] == ([], ("",), frozenset())
    assert fs.listing("zz://both/two").names == ["child"]
    is_both = {name: fs.is_file_and_directory(f"zz://{name}") for name in ("both/two", "usual")}
    assert is_both == {"both/two": True, "usual": False}


@pytest.mark.parametrize(
    ("folder", "what"),
    [("both", "'two' is a file"), ("dots", "'..' was left"), ("beside", "keys with '//'")],
)
def test_names_without_all_that_is_there_come_with_a_warning(served_keys, folder, what):
    functions = gfile.using(served_keys)
    files = ModularFileSystem("zz", service=served_keys)
    for call in (
        lambda: served_keys.filesystem_for("zz://").get_children(f"zz://{folder}"),
        lambda: functions.listdir(f"zz://{folder}"),
        lambda: list(functions.walk(f"zz://{folder}")),
        lambda: files.ls(folder),
        lambda: files.ls(folder, detail=False),
        lambda: files.find(folder),
        lambda: list(files.walk(folder)),
        lambda: files.du(folder),
    ):
        with pytest.warns(IncompleteListingWarning, match=f"zz://{folder}: .*{re.escape(what)}"):
            call()
        with warnings.catch_warnings():
            warnings.simplefilter("error", IncompleteListingWarning)
            with pytest.raises(IncompleteListingWarning):
                call()


@pytest.mark.parametrize("folder", ["both", "dots", "beside", "both/two"])
def test_a_tree_with_what_no_path_leads_to_stays_where_it_is(served_keys, folder, tmp_path):
    store = served_keys.filesystem_for("zz://").fs.store
    before = set(store)
    functions = gfile.using(served_keys)
    files = ModularFileSystem("zz", service=served_keys)
    for call in (
        lambda: files.get(folder, str(tmp_path / "copy"), recursive=True),
        lambda: files.copy(folder, "new", recursive=True),
        lambda: files.mv(folder, "new", recursive=True),
        lambda: functions.rename(f"zz://{folder}", "zz://new"),
    ):
        with pytest.raises(errors.DataLossError):
            call()
        assert set(store) == before


class _ShowsMarkers(MemoryFileSystem):
    """Shows the marker of a directory as gcsfs does, and finds by a prefix."""

    def ls(self, path, detail=True, **options):
        own = {"name": self._strip_protocol(path), "type": "directory", "size": 0}
        found = [own, *super().ls(path, detail=True, **options)]
        return found if detail else [one["name"] for one in found]

    def find(self, path, *arguments, prefix="", **options):
        below = f"{self._strip_protocol(path)}/{prefix}"
        return [one for one in self.store if one.startswith(below)]


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_the_marker_of_a_directory_is_no_key_with_a_doubled_slash(is_wrapped):
    memory = _ShowsMarkers(global_store=False, skip_instance_cache=True)
    memory.pipe_file("/top/folder/a", b"x")
    memory.store["/top/beside/a"] = memory.store["/top/beside//b"] = MemoryFile(memory, "/x", b"x")
    bridge = FsspecOps(DirFileSystem("/top", memory) if is_wrapped else memory)
    base = "zz://" if is_wrapped else "zz:///top/"

    assert bridge.listing(f"{base}folder")[:3] == (["a"], (), frozenset())
    assert bridge.listing(f"{base}beside")[:3] == (["a"], ("",), frozenset())


def test_listed_statistics_are_those_of_stat(ops, tmp_path):
    bridge, base = ops
    # obstore takes no key with a control character.
    odd = set() if isinstance(bridge, ObstoreOps) else {"new\nline"}
    names = {"a", "empty", "m[1]"} | odd
    for name in names:
        write(bridge, f"{base}/{name}", b"" if name == "empty" else b"xyz")
    bridge.create_dir(f"{base}/folder")
    listed, dangling = {*names, "folder"}, set()
    if isinstance(bridge.fs, MemoryFileSystem):
        listed = {"folder"}  # its listings have no times of files
    if isinstance(bridge.fs, LocalFileSystem):
        dangling = {"gone"}
        for name, target in (("link", "a"), ("way", "folder"), ("gone", "nowhere")):
            (tmp_path / "base" / name).symlink_to(tmp_path / "base" / target)
    fs = PythonFilesystem("zz", bridge)
    found = fs.listing(base, with_statistics=True)
    expected = {one: bridge.stat(f"{base}/{one}") for one in found.names if one not in dangling}

    assert listed == {*found.statistics}
    assert expected.items() >= found.statistics.items()
    assert fs.get_children_statistics(base) == expected


def test_usual_directories_have_nothing_that_no_path_leads_to(ops):
    bridge, base = ops
    for name in ("a", "b"):
        write(bridge, f"{base}/{name}", b"x")
    bridge.create_dir(f"{base}/folder")

    assert bridge.listing(base)[:3] == (["a", "b", "folder"], (), frozenset())
    for name in ("a", "folder"):
        assert not bridge.is_file_and_directory(f"{base}/{name}")
    assert not bridge.is_file_and_directory(base)


class _FilledByOthers(MemoryFileSystem):
    """Has old answers in its cache at each call: another thread's request put them there."""

    old_names, old_length = (), 1

    def ls(self, path, detail=True, refresh=False, **kwargs):
        found = super().ls(path, detail=True, **kwargs)
        if not refresh:
            found = [one for one in found if one["name"] in self.old_names]
        return found if detail else [one["name"] for one in found]

    def info(self, path, refresh=False, **kwargs):
        found = super().info(path, **kwargs)
        is_old = not refresh and found["type"] == "file"
        return {**found, "size": self.old_length} if is_old else found


def test_what_another_thread_puts_into_the_cache_is_not_taken():
    bridge = FsspecOps(_FilledByOthers(global_store=False, skip_instance_cache=True))
    bridge.create_dir("zz://base")
    write(bridge, "zz://base/a", b"abc")

    assert bridge.get_children("zz://base") == ["a"]
    assert bridge.get_children_statistics("zz://base")["a"].length == 3
    assert bridge.stat("zz://base/a").length == 3
    assert read(bridge, "zz://base/a") == b"abc"
