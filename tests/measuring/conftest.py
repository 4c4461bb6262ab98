"""Services whose calls are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def service() -> Iterator[PluginService]:
    """A service with the bundled plugins, which counts."""
    with PluginService(statistics=True) as made:
        made.load()
        yield made
