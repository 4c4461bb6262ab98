"""The reference plugins, and a folder for each test."""

from __future__ import annotations

import pytest

from modular_tf import PluginService
from modular_tf.filesystem.filesystem import Filesystem
from tests.contrib.built_plugin import built_plugin
from tests.contrib.disk import Disk


@pytest.fixture(scope="module")
def service():
    """A service with the installed plugins."""
    with PluginService() as made:
        made.load()
        yield made


@pytest.fixture
def copies_by_the_plugin(monkeypatch):
    """Have no copy made by the host where the plugin does not make it."""

    def refuse(_, source, target):
        raise AssertionError(f"the plugin leaves the copy of {source} to {target} to the host")

    monkeypatch.setattr(Filesystem, "copy_file", refuse)


@pytest.fixture
def disk(service, tmp_path, copies_by_the_plugin):
    """A folder that the installed plugin changes."""
    (tmp_path / "root").mkdir()
    return Disk(service.filesystem(""), tmp_path / "root")


@pytest.fixture(scope="session")
def opencl_library():
    """The OpenCL plugin, built as its author would."""
    return built_plugin()
