"""Operations on many files make their calls at once, and no more of them than allowed."""

from __future__ import annotations

import os
import threading

import pytest
from fsspec.callbacks import Callback

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, filesystem_class
from tests.fsspec.far_store import AT_ONCE, SCHEME, TOP, FarStore, serve

COUNT = 3 * AT_ONCE
NAMES = [f"{TOP}/f{number:02}" for number in range(COUNT)]


@pytest.fixture
def store():
    store = FarStore()
    store.files = {f"/{name.partition('/')[2]}": name.encode() for name in NAMES}
    return store


@pytest.fixture
def fs(store):
    service, fs = serve(store)
    with service:
        yield fs


def last(path):
    return path.rpartition("/")[2]


def content(path):
    return path.encode()


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("new_random_access_file", lambda fs: fs.cat(NAMES)),
        ("new_random_access_file", lambda fs: fs.cat_ranges(NAMES, 0, 1)),
        ("append", lambda fs: fs.pipe({f"{name}-new": b"x" for name in NAMES})),
        ("stat", lambda fs: fs.ls(TOP)),
        ("stat", lambda fs: fs.find(TOP)),
        ("stat", lambda fs: list(fs.walk(TOP))),
        ("stat", lambda fs: fs.du(TOP)),
        ("stat", lambda fs: fs.sizes(NAMES)),
        ("stat", lambda fs: fs.glob(f"{TOP}/f*", detail=True)),
        ("delete_file", lambda fs: fs.rm(NAMES)),
        ("delete_file", lambda fs: fs.rm(TOP, recursive=True)),
        ("append", lambda fs: fs.copy(NAMES, [f"{name}-new" for name in NAMES])),
    ],
    ids=[
        "cat", "cat_ranges", "pipe", "ls", "find", "walk", "du", "sizes", "glob", "rm of a list",
        "rm of a tree", "copy",
    ],
)  # fmt: skip
def test_calls_are_made_at_once(fs, store, operation, call):
    store.meet(operation)
    call(fs)

    assert store.has_met(operation)


def test_files_are_fetched_and_sent_at_once(fs, store, tmp_path):
    store.meet("new_random_access_file")
    fs.get(NAMES, [str(tmp_path / last(name)) for name in NAMES])

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        last(name): content(name) for name in NAMES
    }
    store.files.clear()
    store.meet("append")
    fs.put([str(path) for path in sorted(tmp_path.iterdir())], NAMES)
    assert fs.cat(NAMES) == {name: content(name) for name in NAMES}


@pytest.mark.parametrize(("batch_size", "most"), [(None, AT_ONCE), (2, 2), (-1, AT_ONCE), (1, 1)])
def test_no_more_calls_are_under_way_than_asked_for(fs, store, batch_size, most):
    under_way, seen, lock = [], [], threading.Lock()

    def enter(path):
        with lock:
            under_way.append(path)
            seen.append(len(under_way))
        threading.Event().wait(0.005)
        with lock:
            under_way.remove(path)

    store.hooks["read"] = enter
    fs.cat(NAMES, batch_size=batch_size)

    assert max(seen) <= most


def test_a_batch_is_of_one_at_least(fs):
    with pytest.raises(ValueError, match="batch_size"):
        fs.cat(NAMES, batch_size=0)


def test_an_error_of_one_file_is_what_the_caller_says(fs, store):
    store.faults["read", "/f03"] = errors.UnavailableError("gone for now")
    rest = {name: content(name) for name in NAMES if name != NAMES[3]}

    with pytest.raises(ConnectionError, match="gone for now"):
        fs.cat(NAMES)
    assert fs.cat(NAMES, on_error="omit") == rest
    found = fs.cat(NAMES, on_error="return")
    assert isinstance(found.pop(NAMES[3]), errors.UnavailableError)
    assert found == rest


def test_an_error_of_one_range_is_what_the_caller_says(fs, store):
    store.faults["new_random_access_file", "/f01"] = errors.PermissionDeniedError("no")

    found = fs.cat_ranges(NAMES[:3], 0, [1, 2, 3])
    assert [found[0], found[2]] == [b"s", b"sto"]
    assert isinstance(found[1], PermissionError)
    with pytest.raises(PermissionError):
        fs.cat_ranges(NAMES[:3], 0, 1, on_error="raise")


def test_missing_sources_of_a_tree_are_passed_over_or_raised(fs, store):
    store.faults["new_random_access_file", "/f01"] = errors.NotFoundError("just now")

    fs.copy(NAMES[:3], [f"{name}-new" for name in NAMES[:3]], on_error="ignore")
    assert sorted(path for path in store.files if path.endswith("new")) == ["/f00-new", "/f02-new"]
    with pytest.raises(FileNotFoundError):
        fs.copy(NAMES[:3], [f"{name}-new" for name in NAMES[:3]])


@pytest.mark.parametrize("source", ["*.txt", ["a.txt", "b.txt"]], ids=str)
def test_a_copy_to_where_no_directory_is_raises(ram, ram_path, source):
    names = [source] if isinstance(source, str) else source
    paths = [f"{ram_path}/{name}" for name in names]
    ram.pipe({f"{ram_path}/a.txt": b"a", f"{ram_path}/b.txt": b"b"})

    with pytest.raises(FileNotFoundError):
        ram.copy(
            paths[0] if isinstance(source, str) else paths, f"{ram_path}/missing/", recursive=True
        )


class Noted(Callback):
    """Notes what it is told, and the branches that it made."""

    def __init__(self, branches=None, **options):
        super().__init__(**options)
        self.branches = [] if branches is None else branches

    def branched(self, path_1, path_2, **kwargs):
        branch = Noted(self.branches)
        self.branches.append((path_1, path_2, branch))
        return branch


def test_callbacks_are_told_of_files_and_bytes(fs, tmp_path):
    down, up = Noted(), Noted()
    targets = [str(tmp_path / last(name)) for name in NAMES]

    fs.get(NAMES, targets, callback=down)
    fs.put(targets, NAMES, callback=up)

    for noted in (down, up):
        assert (noted.size, noted.value) == (COUNT, COUNT)
        assert sorted(branch.value for *_, branch in noted.branches) == [len(NAMES[0])] * COUNT
    assert sorted(up.branches[0][:2]) == sorted((targets[0], NAMES[0]))


def test_a_tree_goes_down_and_up_with_its_directories(fs, store, tmp_path):
    store.dirs |= {"/sub", "/sub/empty"}
    store.files["/sub/g"] = b"g"
    fs.get(TOP, str(tmp_path / "down"), recursive=True)

    assert (tmp_path / "down/sub/empty").is_dir()
    assert (tmp_path / "down/sub/g").read_bytes() == b"g"
    assert len(list((tmp_path / "down").glob("f*"))) == COUNT
    fs.put(str(tmp_path / "down"), f"{TOP}/up", recursive=True)
    fs.copy(f"{TOP}/up", f"{TOP}/copy", recursive=True)
    assert "/copy/sub/empty" in store.dirs
    assert store.files["/copy/sub/g"] == b"g"
    assert len(fs.find(f"{TOP}/copy")) == COUNT + 1


class _InterruptError(BaseException):
    """As KeyboardInterrupt, which pytest would take for its own."""


def test_an_interrupt_leaves_local_files_whole_or_as_they_were(fs, store, tmp_path):
    targets = [tmp_path / last(name) for name in NAMES]
    targets[5].write_bytes(b"as it was")

    def interrupt(path):
        if path == "/f05":
            raise _InterruptError

    store.hooks["read"] = interrupt
    with pytest.raises(_InterruptError):
        fs.get(NAMES, list(map(str, targets)))

    assert targets[5].read_bytes() == b"as it was"
    for path in tmp_path.iterdir():
        assert path in targets
        assert path == targets[5] or path.read_bytes() == f"{TOP}/{path.name}".encode()


def test_a_failure_in_the_middle_of_a_long_file_leaves_no_part_of_it(fs, store, tmp_path):
    store.files["/long"] = bytes(20 << 20)
    reads = []

    def fail(path):
        reads.append(path)
        if len(reads) == 2:
            raise errors.UnavailableError("cut off")

    store.hooks["read"] = fail
    with pytest.raises(ConnectionError):
        fs.get_file(f"{TOP}/long", str(tmp_path / "long"))

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_ends_early_is_no_file(fs, store, tmp_path, monkeypatch):
    reader = type(fs.filesystem.new_random_access_file(fs.uri(NAMES[0])))
    monkeypatch.setattr(reader, "known_length", lambda _: 1000)

    with pytest.raises(errors.DataLossError, match=f"after {len(NAMES[0])} of 1000"):
        fs.get_file(NAMES[0], str(tmp_path / "short"))
    assert list(tmp_path.iterdir()) == []


def test_a_link_and_the_mode_of_a_local_file_stay(fs, tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to(target)

    fs.get_file(NAMES[0], str(tmp_path / "link"))

    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == content(NAMES[0])
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_file_is_fetched_into_what_is_open(fs, tmp_path):
    with (tmp_path / "open").open("wb") as file:
        fs.get_file(NAMES[0], file)

    assert (tmp_path / "open").read_bytes() == content(NAMES[0])
    with pytest.raises(IsADirectoryError), (tmp_path / "open").open("wb") as file:
        fs.get_file(TOP, file)


def test_a_failed_upload_leaves_what_was_there(fs, store, tmp_path):
    (tmp_path / "new").write_bytes(b"new")

    def fail(path):
        raise errors.UnavailableError("cut off")

    store.hooks["append"] = fail
    before = dict(store.files)
    with pytest.raises(ConnectionError):
        fs.put_file(str(tmp_path / "new"), NAMES[0])
    with pytest.raises(ConnectionError):
        fs.put_file(str(tmp_path / "new"), f"{TOP}/fresh")

    assert store.files == before


def test_names_are_listed_and_matched_without_a_look_at_each(fs, store):
    store.dirs.add("/sub")
    store.files["/sub/f00"] = b""
    store.calls.clear()
    assert fs.ls(TOP, detail=False) == [*NAMES, f"{TOP}/sub"]
    assert fs.glob(f"{TOP}/f*") == NAMES
    assert store.count("stat") == 0

    assert fs.glob(f"{TOP}/s*/f*") == [f"{TOP}/sub/f00"]
    assert store.count("stat") == 1


def test_the_size_of_a_tree_needs_no_second_look(fs, store):
    store.calls.clear()

    assert fs.du(TOP) == sum(map(len, NAMES))
    assert store.count("stat") == COUNT


def test_equal_ranges_of_one_file_are_one_read(fs, store):
    store.files["/large"] = os.urandom(2 << 20)
    starts = [number << 20 for number in range(2)] * 3
    found = fs.cat_ranges([f"{TOP}/large"] * 6, starts, [start + 10 for start in starts])

    assert found == [store.files["/large"][start : start + 10] for start in starts]
    assert store.count("read") == 2
    assert store.count("new_random_access_file") == store.count("close_reader") == 2


def test_ranges_near_each_other_are_one_read(fs, store):
    store.files["/large"] = os.urandom(2 << 20)
    starts = list(range(0, 1 << 20, 1 << 17))
    found = fs.cat_ranges([f"{TOP}/large"] * len(starts), starts, [s + 100 for s in starts])

    assert found == [store.files["/large"][start : start + 100] for start in starts]
    assert store.count("read") == 1
    fs.cat_ranges([f"{TOP}/large"] * 2, [0, 100], [10, 110], max_gap=10)
    assert store.count("read") == 3


def test_listings_are_kept_where_that_is_asked_for(store):
    service, _ = serve(store)
    with service:
        fs = ModularFileSystem(SCHEME, service=service, use_listings_cache=True)
        found = fs.find(TOP, detail=True)
        store.calls.clear()

        assert {entry["name"]: entry for entry in fs.ls(TOP)} == found
        assert fs.ls(TOP, detail=False) == NAMES
        assert fs.du(TOP) == sum(map(len, NAMES))
        assert [fs.info(name)["size"] for name in NAMES] == list(map(len, NAMES))
        assert fs.exists(NAMES[0])
        assert fs.isdir(TOP)
        assert store.calls == []
        fs.rm_file(NAMES[0])
        assert not fs.exists(NAMES[0])


def test_listings_expire_and_are_forgotten(store):
    service, _ = serve(store)
    with service:
        for limit in ({"listings_expiry_time": 0}, {"max_paths": 1}):
            fs = ModularFileSystem(SCHEME, service=service, use_listings_cache=True, **limit)
            store.dirs |= {"/one", "/two"}
            fs.find(TOP)
            store.calls.clear()
            fs.find(TOP)
            assert store.count("get_children") > 0


@pytest.mark.parametrize("put", ["put_file", "put"])
def test_a_file_that_shrinks_while_it_is_uploaded_replaces_nothing(put, service, tmp_path):
    """As a log does that is rotated by copying and truncating it."""
    log = tmp_path / "log"
    log.write_bytes(bytes(40 << 20))

    class Shrinking(Callback):
        def branched(self, *_, **__):
            return self

        def relative_update(self, inc=1):
            if inc > 1:
                os.truncate(log, 10)

    fs = filesystem_class("ram")(service=service)
    fs.pipe_file("kept", b"as it was")
    with pytest.raises(errors.AbortedError, match="it changed while it was read; try again"):
        getattr(fs, put)(str(log), "kept", callback=Shrinking())
    assert fs.cat_file("kept") == b"as it was"


def test_nobody_else_reads_what_replaces_a_private_file(service, tmp_path):
    target = tmp_path / "key.pem"
    target.write_text("old")
    target.chmod(0o600)
    modes = []

    class Looking(Callback):
        def relative_update(self, inc=1):
            modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())

    fs = filesystem_class("ram")(service=service)
    fs.pipe_file("key", b"secret")
    fs.get_file("key", str(target), callback=Looking())
    assert modes
    assert set(modes) == {0o600}
    assert target.stat().st_mode & 0o777 == 0o600
    fs.get_file("key", str(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    found = os.umask(0)
    os.umask(found)
    return found


@pytest.mark.parametrize(
    "call",
    [
        lambda fs: fs.ls(TOP),
        lambda fs: fs.find(TOP, detail=True, withdirs=True),
        lambda fs: list(fs.walk(TOP, detail=True)),
        lambda fs: fs.du(TOP, total=False),
        lambda fs: fs.glob(f"{TOP}/**", detail=True),
        lambda fs: fs.glob(f"{TOP}/*", detail=True),
        lambda fs: fs.glob(f"{TOP}/*/*"),
        lambda fs: fs.glob(f"{TOP}/*/"),
    ],
    ids=["ls", "find", "walk", "du", "glob", "glob of a level", "glob of levels", "directories"],
)
@pytest.mark.parametrize("uses_cache", [False, True])
def test_listed_statistics_are_not_asked_again(store, call, uses_cache):
    store.dirs.add("/sub")
    store.files["/sub/x"] = b"in sub"
    found = []
    for offered in ((), ("get_children_statistics",)):
        service, _ = serve(store, *offered)
        store.calls.clear()
        with service:
            fs = ModularFileSystem(SCHEME, service=service, use_listings_cache=uses_cache)
            found.append(call(fs))

    assert found[0] == found[1]
    asked = {uri for operation, uri in store.calls if operation == "stat"}
    assert asked <= {f"{SCHEME}://{TOP}", f"{SCHEME}://{TOP}/"}
    names = [uri for operation, uri in store.calls if operation == "get_children"]
    assert names in ([], [f"{SCHEME}://{TOP}/sub"])  # of the last level of a pattern


def test_names_alone_are_asked_where_names_are_wanted(store):
    service, fs = serve(store, "get_children_statistics")
    with service:
        assert fs.ls(TOP, detail=False) == NAMES
        assert fs.glob(f"{TOP}/f0*") == NAMES[:10]

    assert {operation for operation, _ in store.calls} == {"get_children"}


@pytest.mark.parametrize("what", ["file", "empty", "nothing"])
def test_a_directory_is_told_from_a_file_and_from_nothing(store, what):
    store.dirs.add("/empty")
    found = {}
    for offered in ((), ("get_children_statistics",)):
        service, fs = serve(store, *offered)
        path = NAMES[0] if what == "file" else f"{TOP}/{what}"
        with service:
            try:
                found[offered] = fs.ls(path)
            except FileNotFoundError:
                found[offered] = None
    assert found[()] == found["get_children_statistics",]
    assert [e["name"] for e in found[()] or ()] == ([path] if what == "file" else [])
    assert (found[()] is None) == (what == "nothing")
