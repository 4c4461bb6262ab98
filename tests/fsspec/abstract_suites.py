"""fsspec's own abstract test suites in one class, to be inherited for each filesystem."""

from __future__ import annotations

import pytest
from fsspec.tests import abstract


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
