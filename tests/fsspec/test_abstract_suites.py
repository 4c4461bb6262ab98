"""fsspec's own abstract test suites, on a plugin in each run."""

from __future__ import annotations

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.tests import abstract

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService
from tests.fixtures.matrices import sampled


@pytest.mark.parametrize("kind", sampled(["ram", "memory", "file"], ["ram"]))
class TestAbstractSuites(
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

    @pytest.fixture
    def fs(self, kind, service):
        if kind != "memory":
            yield ModularFileSystem(kind, service=service, auto_mkdir=True)
            return
        with PluginService(bundled=False) as own:
            memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
            own.register_filesystem("memory", memory)
            yield ModularFileSystem("memory", service=own, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self, kind, tmp_path):
        return str(tmp_path / "remote") if kind == "file" else "base"
