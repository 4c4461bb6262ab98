"""The host's device with the kernels of a module of tests."""

from __future__ import annotations

import pytest

from tests.contrib.built_plugin import built_plugin
from tests.kernel.kernels import host_device_with, kernel_library


@pytest.fixture(scope="module")
def device(request):
    """The device with the library that the module of the test names as `KERNELS`."""
    name = request.module.KERNELS
    build = built_plugin if name == "host_kernels" else kernel_library
    with host_device_with(build(name)) as made:
        yield made
