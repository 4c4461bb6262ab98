"""A service with the two filesystems that the recordings ran on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf import gfile
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def service() -> Iterator[PluginService]:
    with PluginService() as service:
        service.load("posix_filesystem", "ram_filesystem")
        yield service


@pytest.fixture(scope="session")
def functions(service: PluginService) -> gfile.GfileFunctions:
    return gfile.using(service)
