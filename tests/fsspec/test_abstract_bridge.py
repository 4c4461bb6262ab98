"""fsspec's abstract test suites on fsspec's memory, there and back: fsspec → ours → fsspec."""

from __future__ import annotations

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService
from tests.fsspec.abstract_suites import AllAbstractSuites


class TestThereAndBack(AllAbstractSuites):
    @pytest.fixture
    def fs(self):
        memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        with PluginService(bundled=False) as service:
            service.register_filesystem("mem2", memory)
            yield ModularFileSystem("mem2", service=service, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self):
        return "base"
