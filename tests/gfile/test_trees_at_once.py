"""Trees in a store of a network are walked, removed and moved by several calls at once."""

import pytest

from modular_tf import errors, gfile
from tests.fsspec.far_store import AT_ONCE, SCHEME, FarStore, serve

ROOT = f"{SCHEME}://store/"


@pytest.fixture
def store():
    store = FarStore()
    store.dirs |= {"/sub", "/full"}
    for number in range(2 * AT_ONCE):
        store.files[f"/f{number}"] = store.files[f"/full/f{number}"] = b"x"
    return store


@pytest.fixture
def functions(store):
    service, _ = serve(store)
    with service:
        yield gfile.using(service)


def test_a_walk_asks_for_kinds_at_once(functions, store):
    store.meet("stat")
    (first, *_) = functions.walk(ROOT)

    assert first == (ROOT, ["full", "sub"], [f"f{number}" for number in range(2 * AT_ONCE)])
    assert store.has_met("stat")


def test_a_tree_is_removed_at_once(functions, store):
    store.meet("delete_file")
    functions.rmtree(ROOT)

    assert store.files == {}
    assert store.has_met("delete_file")


def test_what_cannot_be_removed_is_told_after_the_rest(functions, store):
    store.faults["delete_file", "/full/f3"] = errors.PermissionDeniedError("no")
    with pytest.raises(PermissionError) as caught:
        functions.rmtree(f"{ROOT}full")

    assert caught.value.undeleted == (1, 1)
    assert [path for path in store.files if path.startswith("/full/")] == ["/full/f3"]


def test_a_directory_is_moved_at_once(functions, store):
    store.dirs.add("/full/deep")
    store.files["/full/deep/g"] = b"g"
    rename = store.rename_file

    def rename_files_only(source, target):
        if source.endswith(("full", "deep")):
            raise errors.FailedPreconditionError("it is a directory")
        rename(source, target)

    store.rename_file = rename_files_only
    service, _ = serve(store)
    store.meet("rename_file")
    with service:
        gfile.using(service).rename(f"{ROOT}full", f"{ROOT}moved")

    assert "/full" not in store.dirs
    assert store.files["/moved/deep/g"] == b"g"
    assert sum(path.startswith("/moved/f") for path in store.files) == 2 * AT_ONCE
    assert store.has_met("rename_file")


def test_a_walk_ends_where_a_link_leads_back(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f").touch()
    (tmp_path / "sub" / "up").symlink_to("..")
    told = []

    walked = list(gfile.walk(str(tmp_path), onerror=told.append))
    assert walked == [(str(tmp_path), ["sub"], []), (f"{tmp_path}/sub", ["up"], ["f"])]
    assert ["leads back" in error.message for error in told] == [True]
    assert list(gfile.walk(str(tmp_path))) == walked


def test_a_walk_asks_for_no_kind_that_is_listed(store):
    store.dirs.add("/full/deep")
    service, _ = serve(store, "get_children_statistics")
    with service:
        walked = list(gfile.using(service).walk(ROOT))
    listed = [operation for operation, *_ in store.calls]

    assert [(top.rstrip("/"), subdirs) for top, subdirs, _ in walked] == [
        (ROOT.rstrip("/"), ["full", "sub"]), (f"{ROOT}full", ["deep"]),
        (f"{ROOT}full/deep", []), (f"{ROOT}sub", []),
    ]  # fmt: skip
    assert walked[1][2] == [f"f{number}" for number in range(2 * AT_ONCE)]
    assert listed.count("get_children_statistics") == 4
    assert listed.count("stat") == 2  # an empty listing may be that of nothing


def test_names_alone_are_asked_for_names(store):
    service, _ = serve(store, "get_children_statistics")
    with service:
        functions = gfile.using(service)
        assert functions.listdir(f"{ROOT}full") == functions.listdir(f"{ROOT}full/")
        assert len(functions.glob(f"{ROOT}full/f*")) == 2 * AT_ONCE

    assert {operation for operation, *_ in store.calls} == {"get_children"}
