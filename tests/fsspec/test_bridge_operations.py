"""Operations of TF_FilesystemOps on filesystems of fsspec and pyarrow and stores of obstore."""

from __future__ import annotations

import time
from datetime import datetime

import pyarrow.fs
import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from modular_tf import IncompleteListingWarning, errors, gfile
from modular_tf.filesystem.fsspec_bridge import FsspecOps
from modular_tf.filesystem.obstore_ops import ObstoreOps
from modular_tf.filesystem.pyarrow_ops import PyarrowOps
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService

OF_DISKS = ("local", "pyarrow", "pyarrow below a path", "obstore")


def new_memory(kind=MemoryFileSystem):
    return kind(global_store=False, skip_instance_cache=True)


@pytest.fixture
def disk_ops(request):
    """Return the operations of a client on the disk, or on what lies below a path."""

    def make(kind, below=""):
        if kind == "local":
            return FsspecOps(LocalFileSystem())
        if kind == "obstore":
            store = request.getfixturevalue("obstore").store.LocalStore
            return ObstoreOps(store(below) if below else store())
        disk = pyarrow.fs.LocalFileSystem()
        is_below = kind == "pyarrow below a path"
        return PyarrowOps(pyarrow.fs.SubTreeFileSystem(below, disk) if is_below else disk)

    return make


@pytest.fixture(params=["memory", *OF_DISKS])
def place(request, tmp_path, disk_ops):
    """The operations on an empty filesystem, and the URI of a directory in it."""
    if request.param == "memory":
        made = FsspecOps(new_memory())
    else:
        made = disk_ops(request.param, str(tmp_path))
    top = f"{tmp_path}/" if request.param in ("local", "pyarrow") else ""
    made.create_dir(f"zz://{top}base")
    return made, f"zz://{top}base"


@pytest.fixture
def ops(place):
    return place[0]


@pytest.fixture
def base(place):
    return place[1]


@pytest.fixture
def memory():
    return new_memory()


@pytest.fixture
def bridge(memory):
    """The operations on `memory`."""
    return FsspecOps(memory)


of_disks = pytest.mark.parametrize("place", OF_DISKS, indirect=True)


def write(ops, uri, data):
    with ops.new_writable_file(uri) as file:
        file.append(data)


def read(ops, uri):
    with ops.new_random_access_file(uri) as file:
        return file.read(0, 1000)


# ---- Links of the disk ----


@of_disks
def test_removing_a_tree_leaves_what_its_links_lead_to(ops, base, tmp_path):
    folder, outside = tmp_path / "base", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"stays")
    (folder / "tree/sub").mkdir(parents=True)
    (folder / "tree/sub/link").symlink_to(outside)
    (folder / "tree/a").write_bytes(b"x")
    (folder / "link").symlink_to(outside)
    (folder / "link-to-file").symlink_to(outside / "file")
    for name in ("tree", "link", "link-to-file"):
        ops.delete_recursively(f"{base}/{name}")

    assert [*folder.iterdir()] == []
    assert (outside / "file").read_bytes() == b"stays"


@pytest.mark.parametrize("kind", ["local", "obstore", "pyarrow"])
def test_the_root_of_the_machine_is_not_removed(kind, disk_ops, monkeypatch):
    ops, removed = disk_ops(kind), []
    monkeypatch.setattr(type(ops), "_remove_tree", lambda _, path: removed.append(path))
    with pytest.raises(errors.FailedPreconditionError, match="the root of all files"):
        ops.delete_recursively("mine:///")
    assert removed == []


@of_disks
def test_a_file_is_kept_where_it_is_copied_or_renamed_to_another_name_of_it(ops, base, tmp_path):
    folder = tmp_path / "base"
    for name in ("one", "other"):
        (folder / name).mkdir()
    (folder / "one/a").write_bytes(b"data")
    (folder / "other/a").hardlink_to(folder / "one/a")
    (folder / "link").symlink_to(folder / "one")
    (folder / "b").symlink_to(folder / "one/a")
    for directory in ("one", "link", "other"):
        ops.copy_file(f"{base}/one/a", f"{base}/{directory}")
    assert (folder / "one/a").read_bytes() == b"data"
    assert [path.name for path in folder.glob("*/*")] == ["a"] * 3
    ops.rename_file(f"{base}/one/a", f"{base}/b")

    assert [*(folder / "one").iterdir()] == []
    assert not (folder / "b").is_symlink()
    assert (folder / "b").read_bytes() == b"data"


# ---- Files ----


def test_a_file_is_written_appended_to_read_and_mapped(ops, base):
    uri = f"{base}/a"
    write(ops, uri, b"long contents")
    write(ops, uri, b"0123")  # opening for writing empties
    for name in ("a", "new"):
        with ops.new_appendable_file(f"{base}/{name}") as writer:
            writer.append(b"456789")
    with ops.new_random_access_file(uri) as reader:
        buffer = bytearray(4)
        assert reader.read(2, 3) == b"234"
        assert reader.readinto(8, buffer) == 2
        assert buffer == b"89\0\0"
        assert reader.read(10, 5) == reader.read(99, 5) == b""
        assert reader.read(0, 100) == b"0123456789"
    with ops.new_read_only_memory_region_from_file(uri) as region:
        assert (bytes(region.view()), len(region)) == (b"0123456789", 10)
        assert region.view().readonly

    assert read(ops, f"{base}/new") == b"456789"
    for closed in (reader, writer, region):
        closed.close()
    for use in (lambda: reader.read(0, 1), lambda: writer.append(b"x"), region.view):
        with pytest.raises(errors.ClosedError):
            use()


@pytest.mark.parametrize("refusal", [ValueError, NotImplementedError])
def test_a_client_that_cannot_append_creates_a_file_and_names_what_can(refusal):
    class NeverAppends(MemoryFileSystem):
        def open(self, path, mode="rb", **options):
            if mode == "ab":
                raise refusal("only 'rb' and 'wb'")
            return super().open(path, mode, **options)

    bridge = FsspecOps(new_memory(NeverAppends))
    with bridge.new_appendable_file("zz://log") as file:
        file.append(b"one")
    with pytest.raises(errors.UnimplementedError, match=r"only 'rb'.*register an obstore store"):
        bridge.new_appendable_file("zz://log")

    assert read(bridge, "zz://log") == b"one"


# ---- Paths ----


def test_children_are_names_in_order_to_all_of_which_a_path_leads(ops, base):
    for name in ("b", "a"):
        write(ops, f"{base}/{name}", b"12345")
    ops.recursively_create_dir(f"{base}/dir/x/y")
    ops.recursively_create_dir(f"{base}/dir/x/y")
    facts = ops.stat(f"{base}/a")

    assert ops.get_children(base) == ["a", "b", "dir"]
    assert ops.get_children(f"{base}/dir/x/y") == []
    assert ops.listing(base)[:3] == (["a", "b", "dir"], (), frozenset())
    for uri in (base, f"{base}/a", f"{base}/dir"):
        assert not ops.is_file_and_directory(uri)
        assert ops.stat(uri).is_directory == ops.is_directory(uri) == (not uri.endswith("/a"))
    assert facts.length == 5
    assert facts.mtime_nsec > 1_500_000_000 * 10**9  # later than 2017: really nanoseconds


def test_what_is_missing_is_not_found(ops, base):
    missing = f"{base}/missing"

    assert not ops.path_exists(missing)
    for operation in (
        ops.stat,
        ops.is_directory,
        ops.new_random_access_file,
        ops.new_read_only_memory_region_from_file,
        ops.delete_file,
        ops.delete_dir,
        ops.delete_recursively,
        ops.get_children,
    ):
        with pytest.raises(errors.NotFoundError) as caught:
            operation(missing)
        assert caught.value.path == missing
        assert caught.value.operation == operation.__name__


def test_the_wrong_kind_is_refused(ops, base):
    write(ops, f"{base}/file", b"")

    for operation, uri in (
        (ops.get_children, f"{base}/file"),
        (ops.delete_dir, f"{base}/file"),
        (ops.delete_file, base),
        (ops.new_random_access_file, base),
        (ops.delete_dir, base),  # not empty
    ):
        with pytest.raises(errors.FailedPreconditionError):
            operation(uri)
    assert ops.path_exists(f"{base}/file")
    with pytest.raises(errors.AlreadyExistsError):
        ops.create_dir(base)


@pytest.mark.parametrize("name", ["a", "a[1]"])
def test_rename_and_copy_replace_a_file_and_enter_a_directory(ops, base, name):
    write(ops, f"{base}/{name}", b"A")
    write(ops, f"{base}/b", b"B")
    ops.create_dir(f"{base}/dir")
    ops.rename_file(f"{base}/{name}", base)  # where it is
    ops.copy_file(f"{base}/{name}", base)
    assert read(ops, f"{base}/{name}") == b"A"

    ops.copy_file(f"{base}/{name}", f"{base}/b")
    ops.copy_file(f"{base}/{name}", f"{base}/dir")
    ops.rename_file(f"{base}/{name}", f"{base}/c")

    assert ops.get_children(base) == ["b", "c", "dir"]
    assert read(ops, f"{base}/b") == b"A"
    assert read(ops, f"{base}/dir/{name}") == b"A"


def test_names_that_look_like_patterns_are_names_and_trees_go_with_all_that_is_in_them(ops, base):
    ops.recursively_create_dir(f"{base}/d*/e")
    write(ops, f"{base}/d*/e/f", b"")
    ops.create_dir(f"{base}/dd")

    assert tuple(ops.delete_recursively(f"{base}/d*")) == (0, 0)
    assert ops.get_children(base) == ["dd"]


class Failing(MemoryFileSystem):
    """Raises `failure` whatever it is asked."""

    cachable = False

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
        (MemoryError(), errors.ResourceExhaustedError),
        (KeyError("what"), errors.UnknownError),
    ],
    ids=repr,
)
def test_failures_become_our_errors_and_are_never_taken_for_absence(failure, expected):
    fs = Failing()
    fs.failure = failure

    with pytest.raises(expected) as caught:
        FsspecOps(fs).path_exists("zz://a")
    assert type(caught.value) is expected
    assert caught.value.__cause__ is failure


@pytest.mark.parametrize("when", ["2024-01-01T00:00:00", datetime(2024, 1, 1)])  # noqa: DTZ001
def test_a_time_without_a_zone_is_of_utc(when, memory, bridge, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        memory.pipe_file("/f", b"")
        info = {"name": "/f", "type": "file", "size": 0, "LastModified": when}
        monkeypatch.setattr(memory, "info", lambda _path: info)
        assert bridge.stat("zz://f").mtime_nsec == 1_704_067_200 * 10**9
    finally:
        monkeypatch.undo()
        time.tzset()


# ---- Renaming directories ----

FILES = {"f": b"1", "[x]*?": b"2", "sub/g": b"3", "sub/deep [1]/h": b"4"}


def make_tree(ops, directory):
    """Make a directory with FILES, one below the other."""
    for below in ("", "/sub", "/sub/deep [1]", "/sub/empty"):
        ops.create_dir(f"{directory}{below}")
    for name, data in FILES.items():
        write(ops, f"{directory}/{name}", data)


def found_in(ops, directory):
    uris = {name: f"{directory}/{name}" for name in FILES}
    return {name: read(ops, uri) for name, uri in uris.items() if ops.path_exists(uri)}


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("a[1]", "b*"), ("a?", "[b]")])
def test_directories_of_any_name_are_renamed_and_not_into_themselves(ops, base, old, new):
    make_tree(ops, f"{base}/{old}")
    for target in (f"{old}/inside", old):
        with pytest.raises(errors.FailedPreconditionError):
            ops.rename_file(f"{base}/{old}", f"{base}/{target}")
    ops.rename_file(f"{base}/{old}", f"{base}/{new}")

    assert ops.get_children(base) == [new]
    assert found_in(ops, f"{base}/{new}") == FILES
    assert ops.get_children(f"{base}/{new}/sub") == ["deep [1]", "empty", "g"]


def test_a_rename_of_a_directory_that_fails_leaves_it_as_it_was(memory, bridge, monkeypatch):
    copy = memory.cp_file
    make_tree(bridge, "zz://a")

    def failing(source, target, **options):
        if source.endswith("/g"):
            raise OSError("it broke off")
        copy(source, target, **options)

    monkeypatch.setattr(memory, "cp_file", failing)
    with pytest.raises(errors.ModularTFError, match="it broke off"):
        bridge.rename_file("zz://a", "zz://b")
    assert found_in(bridge, "zz://a") == FILES
    assert not bridge.path_exists("zz://b")


def test_an_interrupted_rename_leaves_what_others_have_put_where_it_had_not_begun(
    memory, bridge, monkeypatch
):
    copy = memory.cp_file
    make_tree(bridge, "zz://a")

    def interrupted(source, target, **options):
        copy(source, target, **options)
        if source.endswith("/f"):
            memory.pipe_file("/b/sub/g", b"of another")
            raise KeyboardInterrupt

    monkeypatch.setattr(memory, "cp_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bridge.rename_file("zz://a", "zz://b")
    assert found_in(bridge, "zz://a") == FILES
    assert found_in(bridge, "zz://b") == {"sub/g": b"of another"}


# ---- Keys to which no path leads ----


class ListsBelow(MemoryFileSystem):
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
def keys():
    """A service of a store whose keys are names of files and of directories, and parts of both."""
    memory = new_memory(ListsBelow)
    keys = ("/both/two", "/both/two/child", "/both/plain", "/dots/../y", "/dots/ok")
    for key in (*keys, "/beside/a", "/beside//b", "/both-too//two", "/usual/a"):
        memory.store[key] = MemoryFile(memory, key, key.encode())
    with PluginService(bundled=False) as service:
        service.register_filesystem("zz", memory)
        yield service


def test_a_listing_tells_what_no_path_leads_to(keys):
    fs = keys.filesystem_for("zz://both")
    with pytest.warns(IncompleteListingWarning, match="zz://both: .*'two' is a file"):
        fs.get_children("zz://both")
    for folder in ("both", "dots", "beside", "both/two"):
        with pytest.raises(errors.DataLossError):
            fs.rename_file(f"zz://{folder}", "zz://new")

    found = fs.listing("zz://both")
    assert "two" not in found.statistics
    assert found[:3] == (["plain", "two"], (), {"two"})
    assert "'two' is a file and a directory" in found.left_out[0]
    assert fs.listing("zz://dots")[:3] == (["ok"], ("..",), frozenset())
    assert fs.listing("zz://beside")[:3] == (["a"], ("",), frozenset())
    assert fs.listing("zz://both-too")[:3] == ([], ("",), frozenset())
    assert fs.listing("zz://both/two").names == ["child"]
    is_both = {name: fs.is_file_and_directory(f"zz://{name}") for name in ("both/two", "usual")}
    assert is_both == {"both/two": True, "usual": False}


@pytest.mark.parametrize(
    ("folder", "words"),
    [("both", "'two' is a file"), ("dots", r"'\.\.' was left"), ("beside", "keys with '//'")],
)
def test_each_face_warns_of_what_it_leaves_out_and_moves_no_part_of_a_tree(keys, folder, words):
    functions, files = gfile.using(keys), ModularFileSystem("zz", service=keys)
    for face in (
        lambda: functions.listdir(f"zz://{folder}"),
        lambda: list(functions.walk(f"zz://{folder}")),
        lambda: files.ls(folder, detail=False),
        lambda: files.ls(folder),
        lambda: files.find(folder),
        lambda: list(files.walk(folder)),
        lambda: files.du(folder),
    ):
        with pytest.warns(IncompleteListingWarning, match=f"zz://{folder}: .*{words}"):
            face()
    store = keys.filesystem_for("zz://").fs.store
    before = set(store)
    for change in (files.copy, files.mv):
        with pytest.raises(errors.DataLossError):
            change(folder, "new", recursive=True)
    assert set(store) == before


class ShowsMarkers(MemoryFileSystem):
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
    memory = new_memory(ShowsMarkers)
    memory.pipe_file("/top/folder/a", b"x")
    memory.store["/top/beside/a"] = memory.store["/top/beside//b"] = MemoryFile(memory, "/x", b"x")
    bridge = FsspecOps(DirFileSystem("/top", memory) if is_wrapped else memory)
    base = "zz://" if is_wrapped else "zz:///top/"

    assert bridge.listing(f"{base}folder")[:3] == (["a"], (), frozenset())
    assert bridge.listing(f"{base}beside")[:3] == (["a"], ("",), frozenset())


# ---- Listings with statistics ----


def test_listed_statistics_are_those_of_stat(ops, base, tmp_path):
    # obstore takes no key with a control character.
    odd = set() if isinstance(ops, ObstoreOps) else {"new\nline"}
    names = {"a", "empty", "m[1]"} | odd
    for name in names:
        write(ops, f"{base}/{name}", b"" if name == "empty" else b"xyz")
    ops.create_dir(f"{base}/folder")
    listed, dangling = {*names, "folder"}, set()
    if isinstance(ops.fs, MemoryFileSystem):
        listed = {"folder"}  # its listings have no times of files
    if isinstance(ops.fs, LocalFileSystem):
        dangling = {"gone"}
        for name, target in (("link", "a"), ("way", "folder"), ("gone", "nowhere")):
            (tmp_path / "base" / name).symlink_to(tmp_path / "base" / target)
    fs = PythonFilesystem("zz", ops)
    found = fs.listing(base, with_statistics=True)
    expected = {one: ops.stat(f"{base}/{one}") for one in found.names if one not in dangling}

    assert listed == {*found.statistics}
    assert expected.items() >= found.statistics.items()
    assert fs.get_children_statistics(base) == expected


class FilledByOthers(MemoryFileSystem):
    """Has old answers in its cache at each call: another thread's request put them there."""

    def ls(self, path, detail=True, refresh=False, **kwargs):
        found = super().ls(path, detail=True, **kwargs) if refresh else []
        return found if detail else [one["name"] for one in found]

    def info(self, path, refresh=False, **kwargs):
        found = super().info(path, **kwargs)
        return {**found, "size": 1} if not refresh and found["type"] == "file" else found


def test_what_another_thread_puts_into_the_cache_is_not_taken():
    bridge = FsspecOps(new_memory(FilledByOthers))
    bridge.create_dir("zz://base")
    write(bridge, "zz://base/a", b"abc")

    assert bridge.get_children("zz://base") == ["a"]
    assert bridge.get_children_statistics("zz://base")["a"].length == 3
    assert bridge.stat("zz://base/a").length == 3
    assert read(bridge, "zz://base/a") == b"abc"
