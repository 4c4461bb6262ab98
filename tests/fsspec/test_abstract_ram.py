"""fsspec's abstract test suites on the bundled RAM plugin."""

from __future__ import annotations

import pytest

from modular_tf.fsspec import ModularFileSystem
from tests.fsspec.abstract_suites import AllAbstractSuites


class TestRam(AllAbstractSuites):
    @pytest.fixture
    def fs(self, service):
        return ModularFileSystem("ram", service=service, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self, ram_path):
        return ram_path
