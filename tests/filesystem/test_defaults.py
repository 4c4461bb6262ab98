"""What the host does for operations that a filesystem does not have."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from modular_tf.errors import (
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    UnimplementedError,
)
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from tests.filesystem.memory_store import MemoryStore, filesystem_of


def calls(store, operation):
    return [uri for called, uri in store.calls if called == operation]


# ---- recursively_create_dir ----


@pytest.mark.parametrize(
    ("paths", "error", "made"),
    [
        (["/a/b/c"], None, {"/a", "/a/b", "/a/b/c"}),
        (["/d", "/d/", "//d//", "/d/."], None, set()),
        (["//a///b/", "/x/y/../z"], None, {"/a", "/a/b", "/x", "/x/y", "/x/z"}),  # as TensorFlow
        (["/f", "/f/x", "/f/x/y"], FailedPreconditionError, set()),  # below a file
    ],
)
def test_what_is_missing_of_a_path_is_made_and_what_is_there_is_fine(paths, error, made, store, fs):
    store.dirs.add("/d")
    store.files["/f"] = b""
    for path in paths * 2:
        with pytest.raises(error) if error else nullcontext():
            fs.recursively_create_dir(f"mem://h{path}")

    assert store.dirs == {"/", "/d", *made}


def test_a_root_that_is_not_there_ends_too(store, fs):
    store.dirs.clear()
    with pytest.raises(NotFoundError):
        fs.recursively_create_dir("mem://h/a")

    assert store.dirs == set()


def test_other_errors_stop_and_what_was_made_stays(store, fs):
    store.faults["create_dir", "/a/b"] = PermissionDeniedError("not here")
    with pytest.raises(PermissionDeniedError, match="not here"):
        fs.recursively_create_dir("mem://h/a/b/c")

    assert store.dirs == {"/", "/a"}
    store.faults = {("path_exists", "/q"): UnavailableError("down")}
    with pytest.raises(UnavailableError):
        fs.recursively_create_dir("mem://h/q/r")
    assert len(calls(store, "create_dir")) == 2


# ---- delete_recursively ----


@pytest.fixture
def tree(store):
    store.dirs.update(("/d", "/d/e", "/d/e/f", "/d/ü"))
    store.files.update({"/d/1": b"", "/d/e/ 2": b"", "/d/e/f/.3": b"", "/kept": b""})
    return store


def undeleted(fs, path, error, **expected):
    """Delete a tree, which fails; return how many files and directories are left of it."""
    with pytest.raises(error, **expected) as failure:
        fs.delete_recursively(f"mem://h/{path}")
    return failure.value.undeleted


def test_a_tree_goes_and_its_surroundings_stay_and_a_file_goes_as_such(tree, fs):
    assert fs.delete_recursively("mem://h/d") == (0, 0)
    assert (tree.dirs, tree.files) == ({"/"}, {"/kept": b""})
    assert fs.delete_recursively("mem://h/kept") == (0, 0)
    assert tree.files == {}


def test_what_is_not_there_is_told_with_tensorflows_counts(tree, fs):
    assert undeleted(fs, "absent", NotFoundError) == (0, 1)
    assert undeleted(fs, "kept/x", FailedPreconditionError) == (0, 1)  # under a file


def test_siblings_of_what_cannot_be_deleted_go_and_the_first_cause_is_told(tree, fs):
    error = PermissionDeniedError("mine")
    tree.faults = {("delete_file", "/d/e/ 2"): error, ("delete_file", "/kept"): error}

    assert undeleted(fs, "kept", PermissionDeniedError) == (1, 0)
    # the file, and the two directories around it
    assert undeleted(fs, "d", PermissionDeniedError, match="mine") == (1, 2)
    assert tree.dirs == {"/", "/d", "/d/e"}
    assert set(tree.files) == {"/d/e/ 2", "/kept"}


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/b", "/etc", "../../x"])
def test_a_name_that_no_child_has_ends_the_walk_there(name, tree, fs):
    tree.children["/d/e"] = ["f", name]
    undeleted(fs, "d", InternalError, match="no child can have")

    assert set(tree.files) == {"/d/e/ 2", "/d/e/f/.3", "/kept"}
    assert "/" in tree.dirs


class Linked(MemoryStore):
    """A store in which `/d/link` leads to the directory `/outside`."""

    def __init__(self):
        super().__init__()
        self.dirs.update(("/d", "/outside"))
        self.files.update({"/d/link": b"", "/outside/kept": b""})

    def stat(self, uri):
        return super().stat("mem://h/outside" if uri.endswith("/link") else uri)

    def get_children(self, uri):
        return super().get_children("mem://h/outside" if uri.endswith("/link") else uri)


def test_what_a_link_leads_to_is_not_deleted_nor_is_a_link_that_must_stay_followed():
    store = Linked()
    store.faults["delete_file", "/d/link"] = PermissionDeniedError("mine")
    assert undeleted(filesystem_of(store), "d", PermissionDeniedError) == (1, 1)
    assert set(store.files) == {"/d/link", "/outside/kept"}
    store.faults.clear()

    assert filesystem_of(store).delete_recursively("mem://h/d") == (0, 0)
    assert (store.dirs, store.files) == ({"/", "/outside"}, {"/outside/kept": b""})


def test_a_directory_that_can_be_deleted_like_a_file_and_stays_is_emptied(tree, fs):
    seen = tree.delete_file
    fs.delete_file = lambda uri: None if uri.endswith(("/e", "/f", "/ü")) else seen(uri)

    assert fs.delete_recursively("mem://h/d") == (0, 0)
    assert tree.dirs == {"/"}


def test_a_tree_without_an_end_is_given_up(fs):
    fs.get_children = lambda _: ["again" * 40]
    fs.is_directory = fs.path_exists = lambda _: True
    with pytest.raises(InternalError, match="deep"):
        fs.delete_recursively("mem://h/d")


# ---- Questions ----


def test_sizes_and_kinds_come_from_stat(store, fs):
    store.files["/f"] = b"abcd"
    assert fs.get_file_size("mem://h/f") == 4
    assert fs.is_directory("mem://h/f") is False
    assert fs.is_directory("mem://h/") is True
    with pytest.raises(FailedPreconditionError, match="directory"):
        fs.get_file_size("mem://h/")
    for ask in (fs.get_file_size, fs.is_directory, fs.stat):
        with pytest.raises(NotFoundError):
            ask("mem://h/absent")


def test_existence_of_many_is_asked_one_by_one(store, fs):
    store.files["/f"] = b""
    uris = ["mem://h/f", "mem://h/absent", "mem://h/", "mem://h/f"]

    assert fs.paths_exist(uris) == [True, False, True, True]
    assert fs.paths_exist([]) == []
    assert calls(store, "path_exists") == uris
    store.faults["path_exists", "/f"] = UnavailableError("down")
    with pytest.raises(UnavailableError):
        fs.paths_exist(uris)


@pytest.mark.parametrize(
    ("left_out", "operation", "paths"),
    [
        ("new_random_access_file", "copy_file", ("f", "g")),
        ("new_writable_file", "copy_file", ("f", "g")),
        ("create_dir", "recursively_create_dir", ("a",)),
        ("path_exists", "delete_recursively", ("f",)),
        ("stat", "is_directory", ("f",)),
        ("get_children", "get_matching_paths", ("*",)),
        ("delete_file", "rename_file", ("f", "g")),
    ],
)
def test_a_default_without_its_means_says_what_is_missing(left_out, operation, paths, store):
    store.files["/f"] = b"x"
    fs = filesystem_of(store, left_out)
    with pytest.raises(UnimplementedError, match=left_out) as failure:
        getattr(fs, operation)(*(f"mem://h/{path}" for path in paths))

    assert failure.value.plugin == "memory"
    assert store.files["/f"] == b"x"


# ---- which of them the host does ----


@pytest.mark.parametrize("is_there", [True, False])
def test_a_filesystem_of_another_scheme_does_what_the_one_behind_it_does(is_there, store):
    behind = filesystem_of(store, also=("rename_file",) if is_there else ())

    assert PythonFilesystem("zz", behind).does_itself("rename_file") is is_there
    assert not PythonFilesystem("zz", behind).does_itself("delete_recursively")
