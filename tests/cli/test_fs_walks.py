"""Walks through whole trees, as `fs ls -R`, `du` and `find` take them: on stores in memory."""

import pytest

from modular_tf.errors import NotFoundError, PermissionDeniedError
from tests.filesystem.memory_store import MemoryStore
from tests.fsspec.far_store import FarStore


def test_directories_of_a_network_are_listed_at_once(mtf, serving):
    store = FarStore()
    store.dirs |= {f"/f{number:02}" for number in range(32)}
    store.files |= {f"{folder}/x": b"" for folder in store.dirs if folder != "/"}
    store.meet("get_children")
    serving(store)
    found = mtf("fs", "find", "mem://host/").lines

    assert found[:3] == ["mem://host/", "mem://host/f00", "mem://host/f00/x"]
    assert len(found) == 65
    assert store.has_met("get_children")


@pytest.mark.parametrize("operation", ["get_children", "stat"])
def test_what_cannot_be_walked_is_reported_and_the_rest_is_walked(mtf, serving, operation):
    store = MemoryStore()
    store.dirs |= {"/b", "/b/closed"}
    store.files |= {"/b/closed/f": b"", "/b/f": b"", "/b/gone": b""}
    store.faults[operation, "/b/closed"] = PermissionDeniedError("not yours")
    store.faults["stat", "/b/gone"] = NotFoundError("gone meanwhile")
    serving(store)
    ended = mtf("fs", "find", "mem://host/b")

    assert ended.code == 1
    assert ended.lines == [f"mem://host/b{name}" for name in ("", "/closed", "/f", "/gone")]
    assert ended.err == "modular-tf: mem://host/b/closed: not yours\n"


def test_a_plugin_that_lists_no_buckets_is_reported(mtf, serving):
    store = MemoryStore()
    serving(store)
    nothing = mtf("fs", "find", "mem://")
    store.files["/b"] = b""
    bucket = mtf("fs", "find", "mem://")

    assert (nothing.code, nothing.out) == (1, b"")
    assert "does not list what there is; name it: mem://BUCKET/" in nothing.err
    assert (bucket.code, bucket.err) == (0, "")
