"""The libraries on the other side, and the host's device as they see it."""

from __future__ import annotations

import pytest

from tests.dlpack.consumers import CONSUMERS
from tests.dlpack.devices import host_device


@pytest.fixture(params=CONSUMERS)
def consumer(request):
    return CONSUMERS[request.param]()


@pytest.fixture(scope="module")
def cpu():
    service, device = host_device()
    with service:
        yield device


@pytest.fixture(scope="module")
def elsewhere():
    """A device whose memory other libraries cannot read."""
    service, device = host_device(dlpack_types={"HOST_CPU": "EXT_DEV"})
    with service:
        yield device
