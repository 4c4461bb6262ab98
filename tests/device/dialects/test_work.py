"""Work on a device is the same in every generation: what a layout lacks, the host does itself."""

from __future__ import annotations

import threading

import pytest

from tests.device.conftest import device_of
from tests.device.dialects.building import LAYOUTS, Build, DialectPlugin

SIZE = 4096


@pytest.fixture(
    params=[Build(dialect, sizes) for dialect in LAYOUTS for sizes in (True, False)], ids=str
)
def device(request):
    with DialectPlugin(request.param).load() as platform:
        yield device_of(platform, 1)


@pytest.fixture
def stream(device):
    with device.create_stream() as made:
        yield made


def read(stream, memory):
    host = bytearray(len(memory))
    stream.memcpy_dtoh(host, memory)
    stream.block_until_done()
    return bytes(host)


def test_copies_there_and_back(device, stream):
    data = bytes(range(256)) * (SIZE // 256)
    with device.allocate(SIZE) as first, device.allocate(SIZE) as second:
        stream.memcpy_htod(first, data)
        stream.memcpy_dtod(second, first)
        assert read(stream, second) == data


def test_fills(device, stream):
    with device.allocate(SIZE) as memory:
        stream.memset(memory, 0x5A)
        assert read(stream, memory) == b"\x5a" * SIZE
        stream.memset32(memory, 0x01020304, SIZE // 2)
        assert read(stream, memory) == b"\x04\x03\x02\x01" * (SIZE // 8) + b"\x5a" * (SIZE // 2)
        stream.mem_zero(memory, 8, 4)
        assert read(stream, memory)[:16] == b"\x04\x03\x02\x01" + bytes(8) + b"\x04\x03\x02\x01"


def test_events_and_dependencies(device, stream):
    with stream.record_event() as event, device.create_stream() as other:
        other.wait_event(event)
        other.wait_for(stream)
        other.block_until_done()
    device.synchronize()


def test_a_callback_is_called(stream):
    called = threading.Event()
    stream.add_callback(called.set)
    stream.block_until_done()
    assert called.wait(60)


def test_memory_of_the_host_and_its_usage(device):
    with device.allocate_host(SIZE) as host:
        assert len(host.view) == SIZE
    assert device.memory_usage().total == 1 << 30
