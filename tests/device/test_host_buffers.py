"""What asynchronous copies take from the host: a caller's own memory, as it is when they run."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

SIZE = 4096


@pytest.fixture
def gate(host_device):
    """Hold up a stream of the device until the test sets this."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def stream(host_device, gate):
    """A stream whose work waits for the gate."""
    stream = host_device.create_stream()
    stream.add_callback(lambda: gate.wait(60))
    yield stream
    gate.set()
    stream.block_until_done()


def pinned_bytes(device, value):
    memory = device.allocate_host(SIZE)
    memory.view[:] = bytes([value]) * SIZE
    return memory


@pytest.mark.parametrize("kind", ["a buffer of Python's", "host memory of the plugin"])
def test_a_copy_reads_its_source_when_it_runs(host_device, stream, gate, kind):
    """So a caller must not write to it before, in whichever memory it is."""
    is_pinned = kind.startswith("host")
    source = pinned_bytes(host_device, 1) if is_pinned else bytearray(b"\1" * SIZE)
    target = host_device.allocate(SIZE)
    stream.memcpy_htod(target, source)
    view = source.view if is_pinned else memoryview(source)
    view[:] = b"\2" * SIZE
    gate.set()
    stream.block_until_done()
    seen = bytearray(SIZE)
    host_device.memcpy_dtoh(seen, target)

    assert seen == b"\2" * SIZE


def test_a_copy_keeps_the_memory_that_its_caller_drops(host_device, stream, gate):
    target = host_device.allocate(3 * SIZE)
    stream.memcpy_htod(target, np.full(SIZE, 7, "u1"))
    stream.memcpy_htod(target, bytes([8]) * SIZE, offset=SIZE)
    pinned = pinned_bytes(host_device, 9)
    stream.memcpy_htod(target, pinned, offset=2 * SIZE)
    pinned.close()
    del pinned
    gc.collect()
    others = [np.zeros(SIZE, "u1") for _ in range(64)]  # would take what had been freed
    gate.set()
    stream.block_until_done()
    seen = bytearray(3 * SIZE)
    host_device.memcpy_dtoh(seen, target)

    assert len(others) == 64
    assert [set(seen[start : start + SIZE]) for start in range(0, 3 * SIZE, SIZE)] == [
        {7},
        {8},
        {9},
    ]


def test_a_buffer_in_use_cannot_be_resized(host_device, stream, gate):
    source = bytearray(SIZE)
    stream.memcpy_htod(host_device.allocate(SIZE), source)

    with pytest.raises(BufferError):
        source.extend(b"more")
    gate.set()
    stream.block_until_done()
    source.extend(b"more")
    assert len(source) == SIZE + 4
