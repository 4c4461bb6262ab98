"""Operations on many files make their calls at once, and no more of them than allowed."""

from __future__ import annotations

import io
import os

import pytest
from fsspec.callbacks import Callback

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem
from tests.filesystem.memory_store import as_object_store
from tests.fsspec.far_store import AT_ONCE, SCHEME, TOP

COUNT = 3 * AT_ONCE
NAMES = [f"{TOP}/f{number:02}" for number in range(COUNT)]
NEW = [f"{name}-new" for name in NAMES]


@pytest.fixture
def store(store):
    store.files = {f"/{name.partition('/')[2]}": name.encode() for name in NAMES}
    return store


def last(path):
    return path.rpartition("/")[2]


# ---- How many, and what they are told ----

CALLS = {
    "cat": ("new_random_access_file", lambda far: far.cat(NAMES)),
    "cat_ranges": ("new_random_access_file", lambda far: far.cat_ranges(NAMES, 0, 1)),
    "pipe": ("append", lambda far: far.pipe(dict.fromkeys(NEW, b"x"))),
    "ls": ("stat", lambda far: far.ls(TOP)),
    "find": ("stat", lambda far: far.find(TOP)),
    "rm of a list": ("delete_file", lambda far: far.rm(NAMES)),
    "rm of a tree": ("delete_file", lambda far: far.rm(TOP, recursive=True)),
    "copy": ("append", lambda far: far.copy(NAMES, NEW)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_made_at_once(far, store, name):
    operation, call = CALLS[name]
    store.meet(operation)
    call(far)

    assert store.has_met(operation)


class Noted(Callback):
    """Notes what it is told, and the branches that it made."""

    def __init__(self, branches=None, **options):
        super().__init__(**options)
        self.branches = [] if branches is None else branches

    def branched(self, path_1, path_2, **kwargs):
        branch = Noted(self.branches)
        self.branches.append((path_1, path_2, branch))
        return branch


def test_files_are_fetched_and_sent_at_once_and_callbacks_are_told(far, store, tmp_path):
    down, up = Noted(), Noted()
    targets = [str(tmp_path / last(name)) for name in NAMES]
    store.meet("new_random_access_file")
    far.get(NAMES, targets, callback=down)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        last(name): name.encode() for name in NAMES
    }
    store.files.clear()
    store.meet("append")
    far.put(targets, NAMES, callback=up)
    assert far.cat(NAMES) == {name: name.encode() for name in NAMES}
    assert store.has_met("new_random_access_file")
    assert store.has_met("append")
    for noted in (down, up):
        assert (noted.size, noted.value) == (COUNT, COUNT)
        assert sorted(branch.value for *_, branch in noted.branches) == [len(NAMES[0])] * COUNT
    pairs = {frozenset(paths) for paths in zip(targets, NAMES, strict=True)}
    assert {frozenset(paths) for *paths, _ in up.branches} == pairs


@pytest.mark.parametrize(("batch_size", "most"), [(None, AT_ONCE), (2, 2), (-1, AT_ONCE), (1, 1)])
def test_no_more_calls_are_under_way_than_asked_for(far, store, batch_size, most):
    seen = store.most_at_once("read")
    far.cat(NAMES, batch_size=batch_size)

    assert max(seen) <= most


def test_a_batch_is_of_one_at_least(far):
    with pytest.raises(ValueError, match="batch_size"):
        far.cat(NAMES, batch_size=0)


# ---- Errors ----


def test_an_error_of_one_file_is_what_the_caller_says(far, store):
    store.faults["read", "/f03"] = errors.UnavailableError("gone for now")
    rest = {name: name.encode() for name in NAMES if name != NAMES[3]}

    with pytest.raises(ConnectionError, match="gone for now"):
        far.cat(NAMES)
    assert far.cat(NAMES, on_error="omit") == rest
    found = far.cat(NAMES, on_error="return")
    assert isinstance(found.pop(NAMES[3]), errors.UnavailableError)
    assert found == rest
    ranges = far.cat_ranges(NAMES[2:5], 0, [1, 2, 3])
    assert [ranges[0], ranges[2]] == [b"s", b"sto"]
    assert isinstance(ranges[1], errors.UnavailableError)
    with pytest.raises(ConnectionError):
        far.cat_ranges(NAMES[2:5], 0, 1, on_error="raise")


def test_missing_sources_of_a_tree_are_passed_over_or_raised(far, store):
    store.faults["new_random_access_file", "/f01"] = errors.NotFoundError("just now")

    far.copy(NAMES[:3], NEW[:3], on_error="ignore")
    assert sorted(path for path in store.files if path.endswith("new")) == ["/f00-new", "/f02-new"]
    with pytest.raises(FileNotFoundError):
        far.copy(NAMES[:3], NEW[:3])


def test_a_copy_to_where_no_directory_is_raises(ram, ram_path):
    ram.pipe({f"{ram_path}/a.txt": b"a", f"{ram_path}/b.txt": b"b"})
    for paths in (f"{ram_path}/*.txt", [f"{ram_path}/a.txt", f"{ram_path}/b.txt"]):
        with pytest.raises(FileNotFoundError):
            ram.copy(paths, f"{ram_path}/missing/", recursive=True)


# ---- What arrives ----


class Interrupt(BaseException):
    """As KeyboardInterrupt, which pytest would take for its own."""


def test_an_interrupt_leaves_local_files_whole_or_as_they_were(far, store, tmp_path):
    targets = [tmp_path / last(name) for name in NAMES]
    targets[5].write_bytes(b"as it was")

    def interrupt(path):
        if path == "/f05":
            raise Interrupt

    store.hooks["read"] = interrupt
    with pytest.raises(Interrupt):
        far.get(NAMES, list(map(str, targets)))

    assert targets[5].read_bytes() == b"as it was"
    for path in tmp_path.iterdir():
        assert path in targets
        assert path == targets[5] or path.read_bytes() == f"{TOP}/{path.name}".encode()


@pytest.fixture
def changing(far, store):
    """An object of the store that changes when it is read for the second time."""
    as_object_store(far.filesystem)
    store.files["/long"] = b"old" * 4_000_000  # more than a piece
    reads = []

    def change(_):
        reads.append(1)
        if len(reads) == 2:
            store.files["/long"] = b"new" * 4_000_001

    store.hooks["read"] = change
    return f"{TOP}/long"


@pytest.mark.parametrize("kind", ["lpath", "outfile"])
def test_a_download_of_two_versions_fails(far, changing, tmp_path, kind):
    target = tmp_path / "target"
    with pytest.raises(errors.AbortedError, match="it changed while it was read"):
        far.get_file(changing, **{kind: target if kind == "lpath" else io.BytesIO()})

    assert not target.exists()


class Trickle(io.RawIOBase):
    """A raw file that takes a part of what it is given, and nothing at all at last."""

    def __init__(self, room=100):
        self.taken = bytearray()
        self.room = room

    def writable(self):
        return True

    def write(self, data):
        if len(self.taken) >= self.room:
            return None
        self.taken += data[:7]
        return min(len(data), 7)


def test_a_file_that_takes_a_part_at_a_time_gets_all_or_it_is_an_error(far):
    target = Trickle()
    far.get_file(NAMES[0], outfile=target)
    assert target.taken == NAMES[0].encode()
    with pytest.raises(BlockingIOError, match="takes no more bytes"):
        far.get_file(NAMES[0], outfile=Trickle(room=3))


def test_a_file_is_fetched_into_what_is_open(far, tmp_path):
    with (tmp_path / "open").open("wb") as file:
        far.get_file(NAMES[0], file)

    assert (tmp_path / "open").read_bytes() == NAMES[0].encode()
    with pytest.raises(IsADirectoryError), (tmp_path / "open").open("wb") as file:
        far.get_file(TOP, file)


# ---- How few requests ----


@pytest.mark.parametrize(
    ("starts", "n", "options", "reads"),
    [
        ([0, 1 << 20] * 3, 10, {}, 2),
        (list(range(0, 1 << 20, 1 << 17)), 100, {}, 1),
        ([0, 100], 10, {"max_gap": 10}, 2),
    ],
    ids=["equal", "near each other", "farther than is wanted"],
)
def test_equal_ranges_and_those_near_each_other_are_one_read(far, store, starts, n, options, reads):
    content = store.files["/large"] = os.urandom(2 << 20)
    paths, ends = [f"{TOP}/large"] * len(starts), [start + n for start in starts]

    found = far.cat_ranges(paths, starts, ends, **options)
    assert found == [content[start : start + n] for start in starts]
    assert store.count("read") == reads
    assert store.count("new_random_access_file") == store.count("close_reader") == reads


def test_listings_are_stored_where_that_is_asked_for(far, store):
    storing = ModularFileSystem(SCHEME, service=far.service, use_listings_cache=True)
    found = storing.find(TOP, detail=True)
    store.calls.clear()

    assert {entry["name"]: entry for entry in storing.ls(TOP)} == found
    assert storing.ls(TOP, detail=False) == NAMES
    assert storing.du(TOP) == sum(map(len, NAMES))
    assert [storing.info(name)["size"] for name in NAMES] == list(map(len, NAMES))
    assert storing.exists(NAMES[0])
    assert storing.isdir(TOP)
    assert store.calls == []
    storing.rm_file(NAMES[0])
    assert not storing.exists(NAMES[0])
