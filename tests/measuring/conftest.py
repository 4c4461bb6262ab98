"""Services whose calls are counted."""

from __future__ import annotations

import pytest

from modular_tf.service.service import PluginService


@pytest.fixture
def service():
    """A service with the bundled plugins, which counts."""
    with PluginService(statistics=True) as made:
        made.load()
        yield made
