"""Arrays that are closed while somebody exports, copies or looks at them."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from modular_tf import dlpack
from modular_tf.device.streams.event import Event
from modular_tf.errors import ClosedError
from tests.dlpack.exchange import describe, managed_from

VALUES = np.arange(24, dtype="f4").reshape(2, 3, 4)

EXPORTS = {
    "capsule": lambda array: array.__dlpack__(max_version=(1, 0)),
    "legacy capsule": lambda array: array.__dlpack__(),
    "copy": lambda array: array.__dlpack__(max_version=(1, 0), copy=True),
    "buffer": memoryview,
    "table": dlpack.from_dlpack,
    "managed tensor": managed_from,
    "description": describe,
}


def host_memories(device):
    gc.collect()
    return device.executor.host_memories


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("memory", ["host", "unified"])
@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_an_export_that_waits_keeps_the_memory_of_an_array_that_is_closed(
    host_device, export, memory
):
    before = host_memories(host_device)
    array, go_on = host_device.put(VALUES, memory=memory), threading.Event()
    host_device.context.compute.add_callback(lambda: go_on.wait(60))
    assert array.memory  # so that the export waits
    with ThreadPoolExecutor(1) as pool:
        try:
            exported = pool.submit(export, array)
            wait_until(lambda: array._n_exports)
            array.close()
            assert host_memories(host_device) == before + 1
        finally:
            go_on.set()
        with pytest.raises(ClosedError, match="the array was closed"):
            exported.result()

    assert array._n_exports == 0
    assert host_memories(host_device) == before


def has_begun_to_close(executor):
    try:
        Event.create(executor)
    except ClosedError:
        return True
    return False


USES = {
    **EXPORTS,
    "to_numpy": lambda array: array.to_numpy(),
    "to_host": lambda array: array.to_host(),
    "copy_from": lambda array: array.copy_from(VALUES),
}


@pytest.mark.parametrize("memory", ["host", "unified"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_while_a_device_is_closed_nobody_sees_what_it_still_writes(host_device, use, memory):
    executor = host_device.executor
    array = host_device.put(VALUES, memory=memory)
    view = array.memory.view
    gate = threading.Event()
    executor.context.compute.add_callback(lambda: gate.wait(60))
    executor.context.compute.add_callback(lambda: view.__setitem__(slice(None), bytes(len(view))))
    closing = threading.Thread(target=executor.close)
    closing.start()
    try:
        wait_until(lambda: has_begun_to_close(executor))
        with pytest.raises(ClosedError):
            use(array)
    finally:
        gate.set()
        closing.join()

    np.testing.assert_array_equal(np.from_dlpack(array), VALUES * 0)
    use(array)


@pytest.mark.parametrize("memory", ["host", "unified"])
@pytest.mark.parametrize("take", [np.from_dlpack, memoryview, np.asarray, dlpack.from_dlpack])
def test_the_last_consumer_ends_the_memory_of_a_closed_array(host_device, take, memory):
    before = host_memories(host_device)
    array = host_device.put(VALUES, memory=memory)
    first, second = take(array), take(array)
    array.close()
    del first
    assert host_memories(host_device) == before + 1
    np.testing.assert_array_equal(np.asarray(second), VALUES)
    del second

    assert host_memories(host_device) == before
    assert array.closed


def test_a_borrowed_description_keeps_the_memory_as_long_as_the_array(host_device):
    before = host_memories(host_device)
    array = host_device.put(VALUES, memory="host")
    described = describe(array)
    array.close()

    assert host_memories(host_device) == before + 1
    assert (ctypes.c_float * 24).from_address(described.data)[23] == 23
    with pytest.raises(ClosedError):
        describe(array)
    del array
    assert host_memories(host_device) == before


@pytest.mark.parametrize("memory", ["host", "unified", "device"])
def test_views_that_are_released_end_nothing_and_owners_cannot_be_released(host_device, memory):
    before = host_memories(host_device)
    array = host_device.put(VALUES, memory=memory)
    assert not hasattr(array.owner, "release")
    assert not hasattr(array.to_host().owner, "release")
    if memory == "device":
        return
    with array.memory.view as view:
        assert view.nbytes == VALUES.nbytes
    array.memory.view.release()

    assert host_memories(host_device) == before + 1
    np.testing.assert_array_equal(np.from_dlpack(array), VALUES)
