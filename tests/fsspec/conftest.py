"""A service with the bundled plugins, and places in its filesystems to work in."""

from __future__ import annotations

import itertools

import pytest
from fsspec.registry import _registry

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service import PluginService

_serial = itertools.count()


@pytest.fixture(scope="package")
def service():
    """All bundled plugins, loaded."""
    with PluginService() as service:
        service.discover()
        service.load()
        yield service


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
def untouched_registry():
    """Take back what a test does to fsspec's registry."""
    before = dict(_registry)
    yield
    _registry.clear()
    _registry.update(before)
