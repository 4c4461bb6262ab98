"""Arrays on devices, as consumers take them."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from modular_tf.device.device import DeviceArray
from modular_tf.device.device_core import NativeObject
from modular_tf.device.executor import Executor
from modular_tf.device.memory.device_memory import DeviceMemory
from modular_tf.device.streams.stream import Stream
from modular_tf.dlpack import DeviceType, consume, from_dlpack
from modular_tf.errors import ClosedError, ConfigError, InternalError
from modular_tf.native.ffi import lib
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService
from tests.dlpack.devices import host_device
from tests.dlpack.exchange import OURS, delete, describe, managed_from

CPU = (1, 0)
VALUES = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def device(elsewhere):
    return elsewhere


@pytest.mark.parametrize(
    ("where", "memory"), [("elsewhere", "host"), ("elsewhere", "unified"), ("cpu", "device")]
)
def test_memory_that_the_host_can_read_is_seen_where_it_lies(request, where, memory):
    """And kept until the last one who took it has gone, though the array was closed."""
    device = request.getfixturevalue(where)
    gc.collect()
    before = device.executor.host_memories
    array = device.put(VALUES, memory=memory)
    taken, other = np.from_dlpack(array), np.asarray(array)

    assert array.__dlpack_device__() == CPU
    assert taken.ctypes.data == other.ctypes.data == array.address
    array.close()
    del array, other
    device.put(VALUES * 0, memory=memory)
    np.testing.assert_array_equal(taken, VALUES)
    gc.collect()
    assert device.executor.host_memories == before + 1
    del taken
    assert device.executor.host_memories == before


def test_device_memory_gets_to_everybody_by_a_copy_only(device):
    array = device.put(VALUES)
    copy = array.to_host()
    taken = np.from_dlpack(copy)

    assert taken.ctypes.data == copy.address
    np.testing.assert_array_equal(taken, VALUES)
    np.testing.assert_array_equal(device.put(from_dlpack(taken)).to_numpy(), VALUES)
    np.testing.assert_array_equal(np.from_dlpack(array, device="cpu"), VALUES)
    with pytest.raises(BufferError, match="copy=False was asked for"):
        array.__dlpack__(dl_device=CPU, copy=False)
    with pytest.raises(ValueError, match=r"stream 7 .*must be None"):
        array.__dlpack__(dl_device=CPU, stream=7)
    made = consume(array.__dlpack__(copy=True, max_version=(1, 0)))
    assert made.dlpack_device == array.dlpack_device
    assert made.address != array.address


@pytest.mark.parametrize("take", [np.from_dlpack, memoryview])
def test_work_on_a_host_device_is_done_before_others_see_its_memory(cpu, take):
    array = cpu.put(VALUES * 0)
    source = np.array(VALUES)
    stream = cpu.create_stream()
    stream.add_callback(lambda: time.sleep(0.05))
    stream.memcpy_htod(array.memory, source)

    np.testing.assert_array_equal(take(array), VALUES)


def test_memory_of_a_host_device_that_nobody_views_ends_with_the_service():
    service, device = host_device()
    platform = device.factory
    with service:
        arrays = [device.put(VALUES), device.put(VALUES)]
        memory = device.allocate(8)
        pinned = device.put(VALUES, memory="host")
        view = np.from_dlpack(arrays[1])

    assert executors_of(platform)[0].host_memories == 2
    for ended in (*arrays, memory):
        assert ended.closed
        with pytest.raises(ClosedError, match="device"):
            _ = ended.address
    with pytest.raises(ClosedError, match="closed"):
        np.from_dlpack(arrays[1])
    np.testing.assert_array_equal(view, VALUES)
    np.testing.assert_array_equal(np.from_dlpack(pinned), VALUES)
    pinned.close()
    del view
    gc.collect()
    assert executors_of(platform)[0].host_memories == 0
    await_end(platform)


@pytest.mark.parametrize("kind", [DeviceArray, DeviceMemory, NativeObject])
def test_a_service_is_closed_while_threads_make_arrays(kind):
    """Whatever the thread has not set yet: the close failed on an array without its memory."""
    code = kind.__init__.__code__
    for line in sorted({line for _, _, line in code.co_lines() if line}):
        service, device = host_device()
        executor = device.executor
        array = device.put(VALUES)
        close_at(line, code, service, partial(device.put, VALUES))

        assert array._is_ended
        assert executor.host_memories == 0


def close_at(line, code, service, call):
    """Make a call, and close a service in another thread when it reaches a line of some code."""

    def trace(frame, event, _):
        if frame.f_code is not code:
            return None
        if event == "line" and frame.f_lineno == line:
            sys.settrace(before)
            with ThreadPoolExecutor(1) as other:
                other.submit(service.close).result()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(ClosedError):
            call()
    finally:
        sys.settrace(before)
        service.close()
    gc.collect()


def executors_of(platform):
    return list(platform._executors.values())


def await_end(platform):
    """Wait until a closed platform that others viewed memory of is released."""
    end = time.monotonic() + 60
    while platform._holder in platform._live.holders:
        assert time.monotonic() < end
        time.sleep(0.01)


def work_stream(place):
    """Return what the table says that a consumer is to launch on."""
    stream = ctypes.c_void_p()
    assert OURS.stream(*place, ctypes.byref(stream)) == 0
    return stream.value


@pytest.fixture
def gate(device):
    """Hold up a stream of the device until the test sets this."""
    opened = threading.Event()
    yield opened
    opened.set()
    device.executor.synchronize()


def test_the_table_does_not_wait_for_the_device(device, gate):
    array = device.put(VALUES)
    device.context.compute.add_callback(lambda: gate.wait(60))
    managed = managed_from(array)
    described = describe(array)

    assert not gate.is_set()
    assert managed.dl_tensor.data == described.data == array.address
    delete(managed)
    array.close()
    with pytest.raises(ClosedError, match="closed"):
        managed_from(array)
    assert not gate.is_set()


def test_work_on_the_work_stream_comes_after_all_work_of_the_device(device, gate):
    array = device.put(VALUES * 0)
    source = np.array(VALUES)
    other = device.create_stream()
    other.add_callback(lambda: gate.wait(60))
    other.memcpy_htod(array.memory, source)
    compute = device.context.compute

    assert work_stream(array.__dlpack_device__()) == lib.mtf_stream_handle(compute.native)
    seen = np.empty_like(VALUES)
    compute.memcpy_dtoh(seen, array.memory)
    gate.set()
    compute.block_until_done()
    np.testing.assert_array_equal(seen, VALUES)


@pytest.mark.parametrize("is_late", [False, True])
def test_work_of_a_stream_that_was_closed_is_waited_for(device, monkeypatch, is_late):
    """Also where another thread closes it when it was found to have work, before the wait."""
    array = device.put(VALUES * 0)
    done = []
    stream = device.create_stream()
    stream.add_callback(lambda: (time.sleep(0.05), done.append(True)))
    stream.memcpy_htod(array.memory, np.array(VALUES))
    wait_for = Stream.wait_for

    def close_first(self, other):
        if other is stream:
            other.close()
        wait_for(self, other)

    if is_late:
        monkeypatch.setattr(Stream, "wait_for", close_first)
    else:
        stream.close()
    work_stream(array.__dlpack_device__())

    assert done == [True]


def test_a_device_that_cannot_tell_its_stream_says_why(device, monkeypatch):
    def fail(*_):
        raise InternalError("the plugin has lost its streams")

    array = device.put(VALUES)
    monkeypatch.setattr(Executor, "order_after_all", fail)
    with pytest.raises(InternalError, match="lost its streams"):
        work_stream(array.__dlpack_device__())


@pytest.fixture
def vendors_device():
    """A device of which the user says that it is another library's."""
    service, device = host_device(dlpack_types={"HOST_CPU": "CUDA"})
    with service:
        yield device


def test_the_user_says_what_device_memory_is(vendors_device):
    array = vendors_device.put(VALUES)

    assert vendors_device.dlpack_type is DeviceType.CUDA
    assert array.__dlpack_device__() == (DeviceType.CUDA, vendors_device.ordinal)
    assert vendors_device.put(VALUES, memory="unified").__dlpack_device__() == CPU
    np.testing.assert_array_equal(np.from_dlpack(array, device="cpu"), VALUES)
    with pytest.raises(ConfigError, match="'MINE', found 'OPENCL'"):
        PluginService(config=Config(dlpack_types={"MINE": "OPENCL"}))


@pytest.mark.parametrize("asked", [None, 1, 1 << 40, "stream", -1])
def test_a_vendors_stream_comes_once_the_work_is_done(vendors_device, asked):
    """Who orders the work alone, by -1, need not wait; 0 is no stream."""
    array, stream = vendors_device.put(VALUES), vendors_device.context.compute
    done, gate = [], threading.Event()
    stream.add_callback(lambda: (gate.wait(60 if asked == -1 else 0.02), done.append(True)))
    taken = consume(
        array.__dlpack__(stream=stream if asked == "stream" else asked, max_version=(1, 0))
    )

    assert taken.address == array.address
    assert done == ([] if asked == -1 else [True])
    gate.set()
    stream.block_until_done()
    with pytest.raises(ValueError, match="stream 0"):
        array.__dlpack__(stream=0)


def test_work_is_done_before_a_vendors_default_stream_is_named(vendors_device):
    array = vendors_device.put(VALUES)
    done, gate = [], threading.Event()
    vendors_device.context.compute.add_callback(lambda: (gate.wait(60), done.append(True)))
    managed = managed_from(array)
    assert done == []
    threading.Timer(0.05, gate.set).start()
    assert work_stream(array.__dlpack_device__()) is None
    assert done == [True]
    delete(managed)
