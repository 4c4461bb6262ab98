"""Running the command line: in this process, where most tests do, and as a command of its own.

And a store in memory for its verbs, which notes what it is asked.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from modular_tf.cli.frame import Invocation
from modular_tf.cli.fs.work import FileWork
from modular_tf.cli.main import run
from modular_tf.discovery import search
from modular_tf.filesystem.location import Location
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import ESSENTIAL, MemoryStore, Only, filesystem_of
from tests.fixtures.process_group import run_in_group


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self):
        """Standard output, line by line."""
        return os.fsdecode(self.out).splitlines()

    @property
    def object(self):
        """The JSON object on standard output."""
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def no_drop_ins_of_the_checkout(monkeypatch):
    """Leave out what `scripts/build_plugins` may have put into this checkout's `plugin_dirs`."""
    monkeypatch.setattr(search, "_CHECKOUT_DIRECTORY", "no-plugin-dirs")


@pytest.fixture
def mtf(capfdbinary):
    """Run `modular-tf` with these words in this process."""

    def command(*words):
        capfdbinary.readouterr()
        code = run([str(word) for word in words])
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Ended(code, captured.out, captured.err.decode())

    return command


@pytest.fixture
def mtf_process(tmp_path):
    """Run `python -m modular_tf` with these words in a process of its own."""

    def command(*words):
        child = run_in_group(
            [sys.executable, "-m", "modular_tf", *map(str, words)],
            cwd=tmp_path,
            env=dict(os.environ),
            timeout=120,
        )
        return Ended(child.returncode, os.fsencode(child.stdout), child.stderr)

    return command


@pytest.fixture
def serving(monkeypatch):
    """Have commands find a store in memory, with these operations besides the usual."""

    def serve(store, *also):
        @contextmanager
        def session(_call):
            with PluginService() as service:
                service.load()
                service.register_filesystem("mem", filesystem_of(store, also=also))
                yield service

        monkeypatch.setattr(Invocation, "session", session)

    return serve


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
