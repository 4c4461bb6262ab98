"""Paths, listings and changes of the tree."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import PurePosixPath

import fsspec
import pytest

from modular_tf import PluginService, errors
from modular_tf.fsspec import ModularFileSystem, filesystem_class


@pytest.fixture
def tree(ram, ram_path):
    """A directory with `a.csv`, `b.txt` and `sub/c.csv`."""
    ram.mkdir(f"{ram_path}/sub")
    for name in ("a.csv", "b.txt", "sub/c.csv"):
        ram.pipe_file(f"{ram_path}/{name}", name.encode())
    return ram_path


@pytest.mark.parametrize(
    ("scheme", "given", "expected"),
    [
        ("s3", "s3://bucket/key", "bucket/key"),
        ("s3", "s3://bucket/dir/", "bucket/dir"),
        ("s3", "bucket/key", "bucket/key"),
        ("s3", "s3://", ""),
        ("s3", PurePosixPath("bucket/key"), "bucket/key"),
        ("s3", "s3://bucket/a?b=c#d", "bucket/a?b=c#d"),
        ("file", "file:///tmp/x", "/tmp/x"),
        ("file", "/tmp//x/", "/tmp/x"),
        ("file", "file://", "/"),
        ("file", "/", "/"),
    ],
)
def test_paths_are_uris_without_their_protocol(scheme, given, expected):
    assert filesystem_class(scheme)._strip_protocol(given) == expected


def test_a_local_path_may_be_relative(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    assert filesystem_class("file")._strip_protocol("x/y") == f"{tmp_path}/x/y"


def test_the_parent_of_a_top_level_path_is_the_root():
    assert filesystem_class("s3")._parent("s3://bucket") == ""
    assert filesystem_class("s3")._parent("bucket/a/b") == "bucket/a"
    assert filesystem_class("file")._parent("/tmp") == "/"


def test_a_path_gets_its_protocol_back(ram):
    assert ram.unstrip_protocol("a/b") == "ram://a/b"
    assert ram.uri("ram://a/b") == "ram://a/b"


def test_a_listing_describes_files_and_directories(ram, tree):
    entries = ram.ls(tree)

    assert [(e["name"], e["type"], e["size"]) for e in entries] == [
        (f"{tree}/a.csv", "file", 5),
        (f"{tree}/b.txt", "file", 5),
        (f"{tree}/sub", "directory", 0),
    ]
    assert entries == [ram.info(e["name"]) for e in entries]
    assert ram.ls(tree, detail=False) == [e["name"] for e in entries]


def test_a_file_is_listed_as_itself(ram, tree):
    assert ram.ls(f"{tree}/a.csv", detail=False) == [f"{tree}/a.csv"]
    assert ram.ls(f"{tree}/a.csv") == [ram.info(f"{tree}/a.csv")]


def test_the_root_is_a_directory_that_holds_everything(ram, tree):
    assert ram.isdir("ram://")
    assert tree in ram.ls("", detail=False)


def test_long_listings_are_complete_and_in_order(ram, ram_path):
    names = [f"{ram_path}/{i:03}" for i in range(100)]
    for name in names:
        ram.pipe_file(name, name.encode())

    assert [entry["name"] for entry in ram.ls(ram_path)] == names
    assert {entry["size"] for entry in ram.ls(ram_path)} == {len(names[0])}


def test_trees_are_walked_found_and_globbed(ram, tree):
    assert ram.find(tree) == [f"{tree}/a.csv", f"{tree}/b.txt", f"{tree}/sub/c.csv"]
    assert ram.glob(f"{tree}/*.csv") == [f"{tree}/a.csv"]
    assert ram.glob(f"ram://{tree}/**/*.csv") == [f"{tree}/a.csv", f"{tree}/sub/c.csv"]
    assert list(ram.walk(tree)) == [
        (tree, ["sub"], ["a.csv", "b.txt"]),
        (f"{tree}/sub", [], ["c.csv"]),
    ]
    assert ram.du(tree) == 5 + 5 + 9


def test_a_change_has_a_time_and_a_birth_has_none(ram, tree):
    age = datetime.now(timezone.utc) - ram.modified(f"{tree}/a.csv")

    assert timedelta(0) <= age + timedelta(seconds=1) < timedelta(minutes=5)
    with pytest.raises(NotImplementedError):
        ram.created(f"{tree}/a.csv")


def test_directories_are_made_once(ram, ram_path):
    ram.makedirs(f"{ram_path}/x/y")
    ram.makedirs(f"{ram_path}/x/y", exist_ok=True)

    assert ram.isdir(f"{ram_path}/x/y")
    with pytest.raises(FileExistsError):
        ram.makedirs(f"{ram_path}/x/y")
    with pytest.raises(FileExistsError):
        ram.mkdir(f"{ram_path}/x")
    with pytest.raises(FileNotFoundError):
        ram.mkdir(f"{ram_path}/p/q", create_parents=False)


def test_a_file_is_in_the_way_of_a_directory(ram, tree):
    with pytest.raises(FileExistsError):
        ram.makedirs(f"{tree}/a.csv", exist_ok=True)


def test_a_directory_is_not_removed_by_accident(ram, tree):
    with pytest.raises(IsADirectoryError):
        ram.rm(tree)
    with pytest.raises(OSError, match="sub"):
        ram.rmdir(f"{tree}/sub")

    assert ram.exists(f"{tree}/sub/c.csv")


def test_patterns_and_lists_are_removed(ram, tree):
    ram.rm([f"{tree}/a.csv", f"{tree}/s*"], recursive=True)

    assert ram.find(tree) == [f"{tree}/b.txt"]
    assert not ram.exists(f"{tree}/sub")


def test_a_file_moves_and_replaces(ram, tree):
    ram.mv(f"{tree}/a.csv", f"{tree}/b.txt")

    assert ram.cat_file(f"{tree}/b.txt") == b"a.csv"
    assert not ram.exists(f"{tree}/a.csv")


def test_a_directory_takes_a_moved_file_in(ram, tree):
    ram.mv(f"{tree}/a.csv", f"{tree}/sub")
    ram.mv(f"{tree}/b.txt", f"{tree}/sub/")

    assert ram.ls(f"{tree}/sub", detail=False) == [
        f"{tree}/sub/{name}" for name in ("a.csv", "b.txt", "c.csv")
    ]


def test_a_directory_moves_with_all_that_is_in_it(ram, tree):
    ram.mv(f"{tree}/sub", f"{tree}/new", recursive=True)

    assert ram.cat_file(f"{tree}/new/c.csv") == b"sub/c.csv"
    assert not ram.exists(f"{tree}/sub")


def test_many_files_move_by_pattern(ram, tree):
    ram.mkdir(f"{tree}/csv")
    ram.mv(f"{tree}/*.csv", f"{tree}/csv/")

    assert ram.find(f"{tree}/csv") == [f"{tree}/csv/a.csv"]


def test_moving_what_is_missing_changes_nothing(ram, tree):
    with pytest.raises(FileNotFoundError):
        ram.mv(f"{tree}/missing", f"{tree}/b.txt")

    assert ram.cat_file(f"{tree}/b.txt") == b"b.txt"


def test_listings_are_always_fresh_by_default(service, ram, tree):
    other = ModularFileSystem("ram", service=service)
    ram.ls(tree)
    other.rm(f"{tree}/a.csv")

    assert f"{tree}/a.csv" not in ram.ls(tree, detail=False)
    assert f"{tree}/a.csv" not in [entry["name"] for entry in ram.ls(tree)]


def test_a_listings_cache_forgets_what_its_own_instance_changes(service, tree):
    fs = ModularFileSystem("ram", service=service, use_listings_cache=True)
    other = ModularFileSystem("ram", service=service)
    before = fs.ls(tree)
    other.pipe_file(f"{tree}/b.txt", b"somebody else's")

    assert fs.ls(tree) == before
    assert fs.ls(tree, refresh=True) == other.ls(tree)
    fs.pipe_file(f"{tree}/b.txt", b"own")
    assert fs.ls(tree) == other.ls(tree)
    other.rm(f"{tree}/b.txt")
    fs.invalidate_cache()
    assert fs.ls(tree) == other.ls(tree)


def test_a_listings_cache_forgets_all_directories_above_what_comes_and_goes(service, tree):
    fs = ModularFileSystem("ram", service=service, use_listings_cache=True, auto_mkdir=True)
    for change in (
        lambda: fs.makedirs(f"{tree}/made/by/makedirs"),
        lambda: fs.pipe_file(f"{tree}/written/by/auto_mkdir", b""),
        lambda: fs.rm(f"{tree}/made", recursive=True),
    ):
        fs.ls(tree)
        change()
        assert [entry["name"] for entry in fs.ls(tree)] == fs.ls(tree, detail=False)


CHANGES = {
    "pipe_file": lambda fs, tree: fs.pipe_file(f"{tree}/new", b"new"),
    "open": lambda fs, tree: fs.open(f"{tree}/new", "wb").close(),
    "rm": lambda fs, tree: fs.rm(f"{tree}/a.csv"),
    "rm of a tree": lambda fs, tree: fs.rm(f"{tree}/sub", recursive=True),
    "mv": lambda fs, tree: fs.mv(f"{tree}/a.csv", f"{tree}/new"),
    "mkdir": lambda fs, tree: fs.mkdir(f"{tree}/new"),
    "invalidate_cache": lambda fs, tree: (
        fs.filesystem.delete_file(fs.uri(f"{tree}/a.csv")),
        fs.invalidate_cache(),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_listing_that_a_change_overtakes_is_not_cached(change, service, tree, monkeypatch):
    """The store answered before the change, and the answer comes after it."""
    fs = ModularFileSystem("ram", service=service, use_listings_cache=True)
    children = type(fs.filesystem).get_children

    def late(filesystem, uri):
        found = children(filesystem, uri)
        monkeypatch.undo()
        change(fs, tree)
        return found

    monkeypatch.setattr(type(fs.filesystem), "get_children", late)
    fs.ls(tree)
    found = [entry["name"] for entry in fs.ls(tree)]
    assert sorted(found) == sorted(ModularFileSystem("ram", service=service).ls(tree, detail=False))


def test_errors_other_than_absence_are_not_hidden(ram, monkeypatch):
    def refuse(uri):
        raise errors.PermissionDeniedError("no", path=uri)

    monkeypatch.setattr(ram.filesystem, "path_exists", refuse)
    monkeypatch.setattr(ram.filesystem, "stat", refuse)

    for question in (ram.exists, ram.isdir, ram.isfile):
        with pytest.raises(PermissionError):
            question("secret")


def test_transactions_are_refused(ram):
    with pytest.raises(NotImplementedError):
        _ = ram.transaction
    with pytest.raises(NotImplementedError):
        ram.start_transaction()


def test_options_that_would_have_no_effect_are_refused(service):
    with pytest.raises(TypeError, match=r"'key': the plugin has no.*'secret': the"):
        ModularFileSystem("ram", service=service, secret="s", key="k")


def test_a_scheme_nobody_serves_is_an_error_that_names_those_served(service):
    with pytest.raises(errors.UnimplementedError, match="ram"):
        ModularFileSystem("nobody", service=service)


def test_a_class_serves_its_own_scheme_only(service):
    with pytest.raises(TypeError, match="scheme"):
        ModularFileSystem(service=service)
    with pytest.raises(TypeError, match="'ram'"):
        filesystem_class("ram")("file", service=service)


def test_instances_are_equal_by_scheme_and_service(service, ram):
    again = filesystem_class("ram")(service=service)

    assert again == ram
    assert again is not ram
    assert hash(again) == hash(ram)
    assert ModularFileSystem("file", service=service) != ram


def test_a_mapper_is_a_dictionary_of_files(ram, tree):
    mapper = ram.get_mapper(tree)
    mapper["new"] = b"value"

    assert set(mapper) == {"a.csv", "b.txt", "sub/c.csv", "new"}
    assert mapper["new"] == b"value"


def test_generic_transfers_work_both_ways(ram, tree, tmp_path):
    ram.get(tree, str(tmp_path / "down"), recursive=True)
    ram.put(str(tmp_path / "down"), f"{tree}/up", recursive=True)

    assert (tmp_path / "down" / "sub" / "c.csv").read_bytes() == b"sub/c.csv"
    assert ram.cat_file(f"{tree}/up/sub/c.csv") == b"sub/c.csv"
    assert isinstance(ram, fsspec.AbstractFileSystem)


def test_long_listings_need_no_threads(monkeypatch, thread_starts, ram, ram_path):
    monkeypatch.setattr(PluginService, "calls_at_once", lambda *_: 16)
    names = [f"{ram_path}/{number:02}" for number in range(40)]
    for name in names:
        ram.pipe_file(name, b"x")
    thread_starts.fail("no thread left", "modular_tf-call", times=2)

    assert [entry["name"] for entry in ram.ls(ram_path)] == names
    assert [entry["name"] for entry in ram.ls(ram_path)] == names
    assert thread_starts.has_failed


def test_a_tree_is_removed_as_deep_as_it_is_asked_for(ram, ram_path):
    ram.makedirs(f"{ram_path}/d/sub")
    ram.pipe(f"{ram_path}/d/sub/f", b"")
    ram.rm(f"{ram_path}/d", recursive=True, maxdepth=5)

    assert not ram.exists(f"{ram_path}/d")
    assert ram.ls(ram_path) == []
