"""The plugin's own handles, for work that others put on a stream."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pytest

from modular_tf.errors import ClosedError
from modular_tf.native.ffi import lib


class _Device(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("ext", ctypes.c_void_p),
        ("ordinal", ctypes.c_int32),
    ]


@pytest.fixture
def stream(device):
    """Return a stream of the recording plugin."""
    return device.create_stream()


def test_what_work_uses_is_kept_until_the_stream_has_passed_it(recording, device, stream):
    array, memory = device.put(bytes(64)), device.allocate(64)
    with stream.native_handle(array, memory):
        stream.block_until_done()  # which releases nothing that later work uses
        array.close()
        memory.close()
    assert recording.count("deallocate") == 0
    stream.block_until_done()
    assert recording.count("deallocate") == 2

    pinned = device.put(b"bytes", memory="host")
    with suppress(KeyError), stream.native_handle(pinned):
        pinned.close()
        raise KeyError  # work may have been queued before
    assert recording.count("host_memory_deallocate") == 0
    stream.block_until_done()
    assert recording.count("host_memory_deallocate") == 1


def test_the_handle_is_the_plugins_and_the_stream_is_busy_after_the_block(device, stream):
    assert not stream.may_have_work
    with stream.native_handle() as handle, device.create_stream().native_handle() as other:
        assert handle == lib.mtf_stream_handle(stream.native) != other
        assert stream.may_have_work
    assert stream.may_have_work
    stream.block_until_done()
    assert not stream.may_have_work


def test_a_stream_that_is_closed_inside_is_destroyed_after_the_block(recording, stream):
    with stream.native_handle():
        stream.close()
        assert recording.count("destroy_stream") == 0
    assert recording.calls[-2:] == ["block_host_until_done s1", "destroy_stream s1"]


def test_many_blocks_hold_little(recording, device, stream):
    for _ in range(300):
        memory = device.allocate(8)
        with stream.native_handle(memory):
            memory.close()
    assert recording.count("deallocate") > 100


def test_the_handle_of_a_device_is_its_struct(recording):
    with recording.devices() as [device, other]:
        assert _Device.from_address(device.native_handle).ordinal == 0
        assert _Device.from_address(other.native_handle).ordinal == 1
    with pytest.raises(ClosedError):
        _ = device.native_handle
