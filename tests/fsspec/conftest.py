"""Services with the bundled plugins or a store of a network, and places in them to work in."""

from __future__ import annotations

import importlib
import itertools
import sys

import pytest
from fsspec.registry import _registry

from modular_tf.fsspec import ModularFileSystem, origin, registration
from modular_tf.service.service import PluginService
from tests.fixtures.clients import client_libraries
from tests.fsspec.far_store import FarStore, serve

_serial = itertools.count()


@pytest.fixture(scope="package")
def service():
    """All bundled plugins, loaded."""
    with PluginService() as service:
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
def local(service):
    """The filesystem of the disk."""
    return ModularFileSystem("file", service=service)


@pytest.fixture
def store():
    """A store in memory that counts as one of a network."""
    return FarStore()


@pytest.fixture
def far(store):
    """The filesystem of `store`."""
    service, fs = serve(store)
    with service:
        yield fs


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
