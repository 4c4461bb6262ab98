"""fsspec's abstract test suites on the bundled POSIX plugin."""

from __future__ import annotations

import pytest

from modular_tf.fsspec import ModularFileSystem
from tests.fsspec.abstract_suites import AllAbstractSuites


class TestPosix(AllAbstractSuites):
    @pytest.fixture
    def fs(self, service):
        return ModularFileSystem("file", service=service, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self, tmp_path):
        (tmp_path / "remote").mkdir()
        return str(tmp_path / "remote")
