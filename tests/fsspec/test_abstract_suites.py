"""fsspec's own abstract test suites: on the bundled plugins, and on fsspec's memory behind ours."""

from __future__ import annotations

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.tests import abstract

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService


class AllAbstractSuites(
    abstract.AbstractCopyTests,
    abstract.AbstractGetTests,
    abstract.AbstractOpenTests,
    abstract.AbstractPipeTests,
    abstract.AbstractPutTests,
    abstract.AbstractFixtures,
):
    """What fsspec demands of every filesystem."""

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(parts)


class TestPosix(AllAbstractSuites):
    @pytest.fixture
    def fs(self, service):
        return ModularFileSystem("file", service=service, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self, tmp_path):
        (tmp_path / "remote").mkdir()
        return str(tmp_path / "remote")


class TestRam(AllAbstractSuites):
    @pytest.fixture
    def fs(self, service):
        return ModularFileSystem("ram", service=service, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self, ram_path):
        return ram_path


@pytest.fixture(scope="module")
def memory_service():
    with PluginService(bundled=False) as service:
        yield service


class TestThereAndBack(AllAbstractSuites):
    @pytest.fixture
    def fs(self, memory_service):
        memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        undo = memory_service.register_filesystem("mem2", memory)
        yield ModularFileSystem("mem2", service=memory_service, auto_mkdir=True)
        undo()

    @pytest.fixture
    def fs_path(self):
        return "base"
