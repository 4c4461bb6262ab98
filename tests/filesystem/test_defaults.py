"""What the host does for operations that a filesystem does not have."""

from __future__ import annotations

import pytest

from modular_tf.errors import (
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    UnimplementedError,
)
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from modular_tf.filesystem.trees import Item, Removal
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore, filesystem_of


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def fs(store):
    return filesystem_of(store)


def _calls(store, *operations):
    return [call for call in store.calls if call[0] in operations]


# ---- recursively_create_dir ----


def test_missing_parents_are_created_downwards(store, fs):
    fs.recursively_create_dir("mem://h/a/b/c")

    assert store.dirs == {"/", "/a", "/a/b", "/a/b/c"}
    assert _calls(store, "create_dir") == [
        ("create_dir", "mem://h/a"),
        ("create_dir", "mem://h/a/b"),
        ("create_dir", "mem://h/a/b/c"),
    ]


@pytest.mark.parametrize("uri", ["mem://h/a", "mem://h/a/", "mem://h//a//", "mem://h/a/."])
def test_what_is_there_is_fine_every_time(uri, store, fs):
    store.dirs.add("/a")
    fs.recursively_create_dir(uri)
    fs.recursively_create_dir(uri)

    assert store.dirs == {"/", "/a"}


@pytest.mark.parametrize("uri", ["mem://h", "mem://", ""])
def test_without_a_path_there_is_nothing_to_do(uri, store, fs):
    fs.recursively_create_dir(uri)

    assert store.calls == []


def test_a_root_that_is_not_there_ends_too(store, fs):
    store.dirs.clear()
    with pytest.raises(NotFoundError):
        fs.recursively_create_dir("mem://h/a")

    assert store.dirs == set()


def test_slashes_and_dots_make_the_same_directories_as_tensorflow(store, fs):
    fs.recursively_create_dir("mem://h//a///b/")
    assert store.dirs == {"/", "/a", "/a/b"}

    fs.recursively_create_dir("mem://h/x/y/../z")
    assert store.dirs == {"/", "/a", "/a/b", "/x", "/x/y", "/x/z"}


def test_a_file_in_the_way_is_an_error_and_nothing_is_made(store, fs):
    store.files["/f"] = b""
    for uri in ("mem://h/f", "mem://h/f/x", "mem://h/f/x/y"):
        with pytest.raises(FailedPreconditionError):
            fs.recursively_create_dir(uri)

    assert store.dirs == {"/"}


def test_other_errors_stop_and_what_was_made_stays(store, fs):
    store.faults["create_dir", "/a/b"] = PermissionDeniedError("not here")
    with pytest.raises(PermissionDeniedError, match="not here"):
        fs.recursively_create_dir("mem://h/a/b/c")

    assert store.dirs == {"/", "/a"}
    store.faults = {("path_exists", "/q"): UnavailableError("down")}
    with pytest.raises(UnavailableError):
        fs.recursively_create_dir("mem://h/q/r")
    assert _calls(store, "create_dir")[2:] == []


def test_a_directory_that_another_makes_meanwhile_is_fine(store, fs):
    store.dirs.update(("/a", "/a/b"))
    seen = store.path_exists
    fs.path_exists = lambda uri: False if uri.endswith("/b") else seen(uri)

    fs.recursively_create_dir("mem://h/a/b/c")
    assert "/a/b/c" in store.dirs


# ---- delete_recursively ----


def _tree(store):
    store.dirs.update(("/d", "/d/e", "/d/e/f", "/d/ü"))
    store.files.update({"/d/1": b"", "/d/e/ 2": b"", "/d/e/f/.3": b"", "/keep": b""})


def test_a_tree_goes_and_its_surroundings_stay(store, fs):
    _tree(store)
    assert fs.delete_recursively("mem://h/d") == (0, 0)

    assert store.dirs == {"/"}
    assert store.files == {"/keep": b""}


def test_a_file_is_deleted_as_such(store, fs):
    _tree(store)
    assert fs.delete_recursively("mem://h/keep") == (0, 0)

    assert "/keep" not in store.files


def test_nothing_there_is_not_found_with_tensorflows_counts(fs):
    with pytest.raises(NotFoundError) as failure:
        fs.delete_recursively("mem://h/absent")

    assert failure.value.undeleted == (0, 1)


def test_a_path_under_a_file_is_no_directory(store, fs):
    store.files["/f"] = b""
    with pytest.raises(FailedPreconditionError) as failure:
        fs.delete_recursively("mem://h/f/x")

    assert failure.value.undeleted == (0, 1)


def test_a_file_that_cannot_be_deleted_is_counted(store, fs):
    _tree(store)
    store.faults["delete_file", "/keep"] = PermissionDeniedError("mine")
    with pytest.raises(PermissionDeniedError) as failure:
        fs.delete_recursively("mem://h/keep")

    assert failure.value.undeleted == (1, 0)


def test_siblings_of_what_cannot_be_deleted_go_and_the_first_cause_is_told(store, fs):
    _tree(store)
    store.faults["delete_file", "/d/e/ 2"] = PermissionDeniedError("mine")
    with pytest.raises(PermissionDeniedError, match="mine") as failure:
        fs.delete_recursively("mem://h/d")

    assert failure.value.undeleted == (1, 2)  # the file, and the two directories around it
    assert store.dirs == {"/", "/d", "/d/e"}
    assert set(store.files) == {"/d/e/ 2", "/keep"}


def test_a_directory_that_cannot_be_listed_is_counted_once(store, fs):
    _tree(store)
    store.faults["get_children", "/d/e"] = UnavailableError("down")
    with pytest.raises(UnavailableError) as failure:
        fs.delete_recursively("mem://h/d")

    assert failure.value.undeleted == (0, 2)
    assert set(store.files) == {"/d/e/ 2", "/d/e/f/.3", "/keep"}


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/b", "/etc", "../../x"])
def test_a_name_that_no_child_has_ends_the_walk_there(name, store, fs):
    _tree(store)
    store.children["/d/e"] = ["f", name]
    with pytest.raises(InternalError, match="no child can have"):
        fs.delete_recursively("mem://h/d")

    assert set(store.files) == {"/d/e/ 2", "/d/e/f/.3", "/keep"}
    assert "/" in store.dirs


class _Linked(MemoryStore):
    """A store in which `/d/link` leads to the directory `/outside`."""

    def __init__(self):
        super().__init__()
        self.dirs.update(("/d", "/outside"))
        self.files.update({"/d/link": b"", "/outside/kept": b""})

    def stat(self, uri):
        return super().stat("mem://h/outside" if uri.endswith("/link") else uri)

    def get_children(self, uri):
        return super().get_children("mem://h/outside" if uri.endswith("/link") else uri)


def test_what_a_link_leads_to_is_not_deleted():
    store = _Linked()
    assert filesystem_of(store).delete_recursively("mem://h/d") == (0, 0)

    assert store.dirs == {"/", "/outside"}
    assert store.files == {"/outside/kept": b""}


def test_nobody_goes_through_a_link_that_must_stay():
    store = _Linked()
    store.faults["delete_file", "/d/link"] = PermissionDeniedError("mine")
    with pytest.raises(PermissionDeniedError) as failure:
        filesystem_of(store).delete_recursively("mem://h/d")

    assert failure.value.undeleted == (1, 1)
    assert set(store.files) == {"/d/link", "/outside/kept"}


def test_a_directory_that_can_be_deleted_like_a_file_and_stays_is_emptied(store, fs):
    _tree(store)
    seen = store.delete_file
    fs.delete_file = lambda uri: None if uri.endswith(("/e", "/f", "/ü")) else seen(uri)
    assert fs.delete_recursively("mem://h/d") == (0, 0)

    assert store.dirs == {"/"}


def test_a_tree_without_an_end_is_given_up(store, fs):
    fs.get_children = lambda _: ["again"]
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
    assert len(_calls(store, "path_exists")) == 4
    store.faults["path_exists", "/f"] = UnavailableError("down")
    with pytest.raises(UnavailableError):
        fs.paths_exist(uris)


@pytest.mark.parametrize(
    ("left_out", "call"),
    [
        ("new_random_access_file", lambda fs: fs.copy_file("mem://h/f", "mem://h/g")),
        ("new_writable_file", lambda fs: fs.copy_file("mem://h/f", "mem://h/g")),
        ("create_dir", lambda fs: fs.recursively_create_dir("mem://h/a")),
        ("path_exists", lambda fs: fs.delete_recursively("mem://h/f")),
        ("stat", lambda fs: fs.is_directory("mem://h/f")),
        ("get_children", lambda fs: fs.get_matching_paths("mem://h/*")),
        ("delete_file", lambda fs: fs.rename_file("mem://h/f", "mem://h/g")),
    ],
)
def test_a_default_without_its_means_says_what_is_missing(left_out, call, store):
    store.files["/f"] = b"x"
    fs = filesystem_of(store, left_out)
    with pytest.raises(UnimplementedError, match=left_out) as failure:
        call(fs)

    assert failure.value.plugin == "memory"
    assert store.files["/f"] == b"x"


# ---- which of them the host does ----


@pytest.mark.parametrize(("variant", "counted"), [("minimal", 3), ("good", 1)])
def test_the_host_removes_a_tree_file_by_file_where_the_plugin_has_no_operation_for_it(
    variant, counted, fixture_plugin
):
    with PluginService(
        plugin_paths=[fixture_plugin(variant, scheme="zz")], bundled=False
    ) as service:
        service.load()
        fs, job = service.filesystem("zz"), Job(2)
        for directory in ("zz://h/d", "zz://h/d/e"):
            fs.create_dir(directory)
            fs.new_writable_file(f"{directory}/file").close()
        fs.new_writable_file("zz://h/d/other").close()

        Removal(job).run([Item.at(Location(fs, "zz://h/d"))])

        job.raise_first()
        assert job.totals.files == counted
        assert not fs.path_exists("zz://h/d")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_filesystem_of_another_scheme_does_what_the_one_behind_it_does(is_there, store):
    behind = filesystem_of(store, also=("rename_file",) if is_there else ())

    assert PythonFilesystem("zz", behind).does_itself("rename_file") is is_there
    assert not PythonFilesystem("zz", behind).does_itself("delete_recursively")
