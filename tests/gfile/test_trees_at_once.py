"""Trees in a store of a network are walked, removed and moved by several calls at once."""

from contextlib import contextmanager

import pytest

from modular_tf import errors, gfile
from tests.fsspec.far_store import AT_ONCE, SCHEME, FarStore, serve

ROOT = f"{SCHEME}://store/"


@pytest.fixture
def store():
    store = FarStore()
    store.dirs |= {"/sub", "/full", "/full/deep"}
    store.files["/full/deep/g"] = b"g"
    for number in range(2 * AT_ONCE):
        store.files[f"/f{number}"] = store.files[f"/full/f{number}"] = b"x"
    return store


@contextmanager
def functions_on(store):
    service, _ = serve(store)
    with service:
        yield gfile.using(service)


def test_a_walk_asks_for_kinds_at_once(store):
    store.meet("stat")
    with functions_on(store) as functions:
        walked = {top.rstrip("/"): names for top, *names in functions.walk(ROOT)}

    assert walked[f"{ROOT}full/deep"] == [[], ["g"]]
    assert len(walked) == 4
    assert store.has_met("stat")


def test_a_tree_is_removed_at_once(store):
    store.meet("delete_file")
    with functions_on(store) as functions:
        functions.rmtree(ROOT)

    assert store.files == {}
    assert store.has_met("delete_file")


def test_a_directory_is_moved_at_once(store):
    rename = store.rename_file

    def rename_files_only(source, target):
        if source.endswith(("full", "deep")):
            raise errors.FailedPreconditionError("it is a directory")
        rename(source, target)

    store.rename_file = rename_files_only
    store.meet("rename_file")
    with functions_on(store) as functions:
        functions.rename(f"{ROOT}full", f"{ROOT}moved")

    assert "/full" not in store.dirs
    assert store.files["/moved/deep/g"] == b"g"
    assert sum(path.startswith("/moved/f") for path in store.files) == 2 * AT_ONCE
    assert store.has_met("rename_file")


def test_a_walk_ends_where_a_link_leads_back(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f").touch()
    (tmp_path / "sub" / "up").symlink_to("..")
    failures = []

    walked = list(gfile.walk(str(tmp_path), onerror=failures.append))
    assert walked == [(str(tmp_path), ["sub"], []), (f"{tmp_path}/sub", ["up"], ["f"])]
    assert ["leads back" in error.message for error in failures] == [True]
    assert list(gfile.walk(str(tmp_path))) == walked
