"""A service with the bundled plugins, and places in its filesystems to work in."""

from __future__ import annotations

import importlib
import itertools
import os
import sys

import pytest
from fsspec.registry import _registry

from modular_tf.fsspec import ModularFileSystem, origin, registration
from modular_tf.service.service import PluginService
from tests.fixtures.children import describe
from tests.fixtures.clients import client_libraries
from tests.fixtures.process_group import run_in_group

_serial = itertools.count()


@pytest.fixture(scope="package")
def service():
    """All bundled plugins, loaded."""
    with PluginService() as service:
        service.discover()
        service.load()
        yield service


@pytest.fixture(scope="session")
def obstore():
    """The library of that name, out of the folder of the stores' clients."""
    folder = str(client_libraries("store-clients"))
    sys.path.append(folder)
    yield importlib.import_module("obstore")
    sys.path.remove(folder)


@pytest.fixture
def ram(service):
    """The `ram` filesystem."""
    return ModularFileSystem("ram", service=service)


@pytest.fixture
def ram_path(ram):
    """The path of a directory in `ram` that no other test uses."""
    path = f"fsspec-test-{next(_serial)}"
    ram.mkdir(path)
    yield path
    ram.rm(path, recursive=True)


@pytest.fixture
def untouched_registry(monkeypatch):
    """Take back what a test does to fsspec's registry, and begin with no service registered."""
    monkeypatch.setattr(origin, "registered", {})
    monkeypatch.setattr(registration, "_layers", {})
    monkeypatch.setattr(registration, "_reported", set())
    before = dict(_registry)
    yield
    _registry.clear()
    _registry.update(before)


@pytest.fixture
def mtf_in(tmp_path):
    """Make a runner of `modular-tf` with an environment and global options; it gives stdout."""

    def make(environment, *options):
        def command(*words, status=0):
            child = run_in_group(
                [sys.executable, "-m", "modular_tf", *map(str, (*options, *words))],
                cwd=tmp_path,
                env={**os.environ, **environment},
                timeout=120,
            )
            if child.returncode != status:
                pytest.fail(describe(child), pytrace=False)
            return child.stdout

        return command

    return make
