"""Walks through whole trees, as `fs ls -R`, `du` and `find` take them: on stores in memory."""

import pytest

from modular_tf.cli.fs.work import FileWork
from modular_tf.errors import NotFoundError, PermissionDeniedError
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.trees import Walk
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore, filesystem_of
from tests.fsspec.far_store import FarStore


@pytest.fixture
def served():
    """Serve a store; return a location in it, and the work of a verb."""
    with PluginService() as service:

        def serve(store, uri="mem://host/b"):
            service.register_filesystem("mem", filesystem_of(store))
            return Location(service.filesystem("mem"), uri), FileWork(service, [uri])

        yield serve


def walked(location, work):
    """Return what a walk comes to, and how many failures there were."""
    walk = Walk(work)
    found = [
        (entry.location.uri.removeprefix("mem://host"), entry.depth)
        for entry in walk.through(walk.roots([location]))
    ]
    return found, len(work.failures)


def test_directories_of_a_network_are_listed_at_once(served):
    store = FarStore()
    store.dirs |= {f"/f{number:02}" for number in range(32)}
    store.files |= {f"{folder}/x": b"" for folder in store.dirs if folder != "/"}
    store.meet("get_children")

    found, _ = walked(*served(store, "mem://host/"))

    assert found[:3] == [("/", 0), ("/f00", 1), ("/f00/x", 2)]
    assert len(found) == 65
    assert store.has_met("get_children")


@pytest.mark.parametrize("operation", ["get_children", "stat"])
def test_what_cannot_be_walked_is_reported_and_the_rest_is_walked(served, capsys, operation):
    store = MemoryStore()
    store.dirs |= {"/b", "/b/closed"}
    store.files |= {"/b/closed/f": b"", "/b/f": b"", "/b/gone": b""}
    store.faults[operation, "/b/closed"] = PermissionDeniedError("not yours")
    store.faults["stat", "/b/gone"] = NotFoundError("gone meanwhile")

    assert walked(*served(store)) == ([("/b", 0), ("/b/closed", 1), ("/b/f", 1), ("/b/gone", 1)], 1)
    assert "mem://host/b/closed: not yours" in capsys.readouterr().err


def test_a_plugin_that_lists_no_buckets_is_reported(served, capsys):
    store = MemoryStore()
    buckets, work = served(store, "mem://")
    assert Walk(work).roots([buckets]) == []
    store.files["/b"] = b""
    assert len(Walk(work).roots([buckets])) == 1

    assert len(work.failures) == 1
    assert "does not list what there is; name it: mem://BUCKET/" in capsys.readouterr().err
