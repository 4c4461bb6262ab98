"""Verbs of the command line on a store in memory, which notes what it is asked."""

from __future__ import annotations

import pytest

from modular_tf.cli.fs.work import FileWork
from modular_tf.filesystem.location import Location
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import ESSENTIAL, MemoryStore, Only


class ObjectStore:
    """A store in memory behind the scheme `mem`, which follows the rules of object stores."""

    def __init__(self, service):
        self.service = service
        self.memory = MemoryStore()
        service.register_filesystem("mem", Only(self.memory, ESSENTIAL))
        self.filesystem = service.filesystem("mem")
        self.filesystem.is_object_store = True

    def work(self, jobs=1):
        """Return the work of a verb, without progress and summary."""
        return FileWork(self.service, ["mem://h"], jobs=jobs)

    def location(self, uri):
        """Return the location of a URI."""
        return Location(self.service.filesystem_for(str(uri)), str(uri))

    def asked(self):
        """Return how often each operation was called since the last time."""
        counts = {}
        for operation, *_ in self.memory.calls:
            counts[operation] = counts.get(operation, 0) + 1
        self.memory.calls.clear()
        return counts


@pytest.fixture
def object_store():
    with PluginService() as service:
        service.load()
        yield ObjectStore(service)
