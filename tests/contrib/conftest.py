"""Plugins in child processes, and a fresh root for each test."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.contrib.built_plugin import built_plugin
from tests.contrib.opencl_plugin import ON_POCL
from tests.contrib.plugin_process import PluginProcess, installed_plugin
from tests.contrib.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMES = {"posix_filesystem": "file", "ram_filesystem": "ram"}


class _Pool:
    """One child per plugin; one that a test killed is started again for the next."""

    def __init__(self) -> None:
        self._children: dict[str, PluginProcess] = {}

    def get(self, name: str) -> PluginProcess:
        child = self._children.get(name)
        if child is None or not child.alive:
            child = PluginProcess("filesystem", installed_plugin(name), SCHEMES[name])
            self._children[name] = child
        return child

    def close(self) -> list[int]:
        return [child.close() for child in self._children.values()]


@pytest.fixture(scope="session")
def _pool() -> Iterator[_Pool]:
    pool = _Pool()
    yield pool
    statuses = pool.close()
    assert not any(statuses), f"plugin processes ended with {statuses}"


@pytest.fixture
def posix(_pool: _Pool, tmp_path: Path) -> World:
    """A folder of its own on the disk."""
    return World(_pool.get("posix_filesystem"), str(tmp_path / "root"))


@pytest.fixture
def ram(_pool: _Pool) -> World:
    """A directory of its own in memory."""
    return World(_pool.get("ram_filesystem"), f"ram://{uuid.uuid4().hex}")


@pytest.fixture(params=["posix", "ram"])
def world(request: pytest.FixtureRequest) -> World:
    """One of the two, populated."""
    made: World = request.getfixturevalue(request.param)
    made.populate()
    return made


@pytest.fixture
def host_device() -> Iterator[PluginProcess]:
    """One host device, in a process that must end in order."""
    process = PluginProcess("device", installed_plugin("host_device"))
    yield process
    assert process.close() == 0


@pytest.fixture
def device(host_device: PluginProcess) -> PluginProcess:
    """The host device, where a file is about no other."""
    return host_device


@pytest.fixture(scope="session")
def opencl_library() -> Path:
    """The OpenCL plugin, built as its author would."""
    return built_plugin()


@pytest.fixture
def opencl_device(opencl_library: Path) -> Iterator[PluginProcess]:
    """One OpenCL device, in a process that must end in order."""
    process = PluginProcess("device", opencl_library, env=ON_POCL)
    counted = process.device_count()
    if not counted.value:
        process.close()
        pytest.fail(f"the tests need PoCL (Debian: pocl-opencl-icd): {counted}", pytrace=False)
    yield process
    assert process.close() == 0
