"""Paths, listings and changes of the tree."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import PurePosixPath

import fsspec
import pytest

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, filesystem_class


@pytest.fixture
def tree(ram, ram_path):
    """A directory with `a.csv`, `b.txt` and `sub/c.csv`."""
    ram.mkdir(f"{ram_path}/sub")
    for name in ("a.csv", "b.txt", "sub/c.csv"):
        ram.pipe_file(f"{ram_path}/{name}", name.encode())
    return ram_path


def names_of(entries):
    return [entry["name"] for entry in entries]


# ---- Names ----


@pytest.mark.parametrize(
    ("scheme", "given", "expected"),
    [
        ("s3", "s3://bucket/key", "bucket/key"),
        ("s3", "bucket/key", "bucket/key"),
        ("s3", "s3://", ""),
        ("s3", PurePosixPath("bucket/key"), "bucket/key"),
        ("s3", "s3://bucket/a?b=c#d", "bucket/a?b=c#d"),
        ("file", "file:///tmp/x", "/tmp/x"),
        ("file", "/tmp//x/", "/tmp/x"),
        ("file", "file://", "/"),
        ("file", "x/y", "{}/x/y"),
    ],
)
def test_paths_are_uris_without_their_protocol(scheme, given, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert filesystem_class(scheme)._strip_protocol(given) == expected.format(tmp_path)


# ---- Listings ----


def test_a_listing_describes_files_and_directories(ram, tree):
    entries = ram.ls(tree)

    assert [(e["name"], e["type"], e["size"]) for e in entries] == [
        (f"{tree}/a.csv", "file", 5),
        (f"{tree}/b.txt", "file", 5),
        (f"{tree}/sub", "directory", 0),
    ]
    assert entries == [ram.info(name) for name in names_of(entries)]
    assert ram.ls(tree, detail=False) == names_of(entries)
    assert ram.ls(f"{tree}/a.csv", detail=False) == [f"{tree}/a.csv"]
    assert ram.ls(f"{tree}/a.csv") == [ram.info(f"{tree}/a.csv")]
    assert ram.isdir("ram://")
    assert tree in ram.ls("", detail=False)


def test_a_change_has_a_time_and_a_birth_has_none(ram, tree):
    age = datetime.now(timezone.utc) - ram.modified(f"{tree}/a.csv")

    assert timedelta(0) <= age + timedelta(seconds=1) < timedelta(minutes=5)
    with pytest.raises(NotImplementedError):
        ram.created(f"{tree}/a.csv")


# ---- Changes ----


def test_directories_are_made_once(ram, tree):
    ram.makedirs(f"{tree}/x/y")
    ram.makedirs(f"{tree}/x/y", exist_ok=True)

    assert ram.isdir(f"{tree}/x/y")
    for refused in (
        lambda: ram.makedirs(f"{tree}/x/y"),
        lambda: ram.mkdir(f"{tree}/x"),
        lambda: ram.makedirs(f"{tree}/a.csv", exist_ok=True),  # a file is in the way
    ):
        with pytest.raises(FileExistsError):
            refused()
    with pytest.raises(FileNotFoundError):
        ram.mkdir(f"{tree}/p/q", create_parents=False)


def test_a_directory_is_not_removed_by_accident(ram, tree):
    with pytest.raises(IsADirectoryError):
        ram.rm(tree)
    with pytest.raises(OSError, match="sub"):
        ram.rmdir(f"{tree}/sub")

    assert ram.exists(f"{tree}/sub/c.csv")


@pytest.mark.parametrize(
    ("source", "target", "moved"),
    [
        ("a.csv", "b.txt", {"b.txt": "a.csv", "sub/c.csv": "sub/c.csv"}),
        ("a.csv", "sub", {"b.txt": "b.txt", "sub/a.csv": "a.csv", "sub/c.csv": "sub/c.csv"}),
        ("sub", "new", {"a.csv": "a.csv", "b.txt": "b.txt", "new/c.csv": "sub/c.csv"}),
        ("*.csv", "sub/", {"b.txt": "b.txt", "sub/a.csv": "a.csv", "sub/c.csv": "sub/c.csv"}),
    ],
    ids=["onto a file", "into a directory", "a directory", "a pattern"],
)
def test_what_is_moved_arrives(ram, tree, source, target, moved):
    ram.mv(f"{tree}/{source}", f"{tree}/{target}", recursive=source == "sub")

    found = {path.removeprefix(f"{tree}/"): ram.cat_file(path) for path in ram.find(tree)}
    assert found == {path: data.encode() for path, data in moved.items()}


# ---- Listings that are stored ----


@pytest.fixture
def storing(service):
    """A filesystem that stores listings."""
    return ModularFileSystem("ram", service=service, use_listings_cache=True, auto_mkdir=True)


def test_a_listings_cache_does_not_see_what_others_change_unless_it_is_refreshed(
    ram, storing, tree
):
    before = storing.ls(tree)
    ram.pipe_file(f"{tree}/b.txt", b"somebody else's")

    assert storing.ls(tree) == before
    assert storing.info(tree)["size"] == 0
    assert storing.ls(tree, refresh=True) == ram.ls(tree)


CHANGES = {
    "makedirs": lambda fs, tree: fs.makedirs(f"{tree}/made/by/makedirs"),
    "pipe_file": lambda fs, tree: fs.pipe_file(f"{tree}/written/by/auto_mkdir", b"new"),
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


@pytest.mark.parametrize("change", CHANGES)
def test_a_listings_cache_forgets_what_a_change_concerns(change, ram, storing, tree):
    storing.ls(tree)
    CHANGES[change](storing, tree)

    assert names_of(storing.ls(tree)) == ram.ls(tree, detail=False)


@pytest.mark.parametrize("change", CHANGES)
def test_a_listing_that_a_change_overtakes_is_not_cached(change, ram, storing, tree, monkeypatch):
    """The store answered before the change, and the answer comes after it."""
    children = type(storing.filesystem).get_children

    def late(filesystem, uri):
        found = children(filesystem, uri)
        monkeypatch.undo()
        CHANGES[change](storing, tree)
        return found

    monkeypatch.setattr(type(storing.filesystem), "get_children", late)
    storing.ls(tree)
    assert sorted(names_of(storing.ls(tree))) == sorted(ram.ls(tree, detail=False))


# ---- What is refused, and instances ----


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


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda service: ModularFileSystem("ram", service=service, secret="s", key="k"),
            TypeError,
            r"'key': the plugin has no.*'secret': the",
        ),
        (
            lambda service: ModularFileSystem("nobody", service=service),
            errors.UnimplementedError,
            "ram",
        ),
        (lambda service: ModularFileSystem(service=service), TypeError, "scheme"),
        (lambda service: filesystem_class("ram")("file", service=service), TypeError, "'ram'"),
    ],
    ids=["options without effect", "a scheme that nobody serves", "no scheme", "another scheme"],
)
def test_what_makes_no_instance_is_refused(service, make, error, message):
    with pytest.raises(error, match=message):
        make(service)


def test_instances_are_equal_by_scheme_and_service(service, ram, local):
    again = filesystem_class("ram")(service=service)

    assert again == ram
    assert again is not ram
    assert hash(again) == hash(ram)
    assert local != ram
    assert isinstance(ram, fsspec.AbstractFileSystem)
