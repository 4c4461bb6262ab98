"""A service with the two filesystems that the recordings ran on."""

import pytest

from modular_tf import gfile
from modular_tf.service.service import PluginService


@pytest.fixture(scope="session")
def service():
    with PluginService() as service:
        service.load("posix_filesystem", "ram_filesystem")
        yield service


@pytest.fixture(scope="session")
def functions(service):
    return gfile.using(service)
