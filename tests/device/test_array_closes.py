"""Arrays that are closed while somebody exports, copies or looks at them."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from modular_tf.errors import ClosedError

VALUES = np.arange(24, dtype="f4").reshape(2, 3, 4)


def host_memories(device):
    gc.collect()
    return device.executor.host_memories


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("memory", ["host", "unified"])
def test_an_export_that_waits_keeps_the_memory_of_an_array_that_is_closed(host_device, memory):
    before = host_memories(host_device)
    array, go_on = host_device.put(VALUES, memory=memory), threading.Event()
    host_device.context.compute.add_callback(lambda: go_on.wait(60))
    assert array.memory  # so that the export waits
    with ThreadPoolExecutor(1) as pool:
        try:
            exported = pool.submit(memoryview, array)
            wait_until(lambda: array._n_exports)
            array.close()
            assert host_memories(host_device) == before + 1
        finally:
            go_on.set()
        with pytest.raises(ClosedError, match="the array was closed"):
            exported.result()

    assert array._n_exports == 0
    assert host_memories(host_device) == before


def has_begun_to_close(device):
    try:
        device.create_event()
    except ClosedError:
        return True
    return False


USES = {
    "capsule": lambda array: array.__dlpack__(max_version=(1, 0)),
    "buffer": memoryview,
    "to_numpy": lambda array: array.to_numpy(),
    "to_host": lambda array: array.to_host(),
    "copy_from": lambda array: array.copy_from(VALUES),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_while_a_device_is_closed_nobody_sees_what_it_still_writes(host_device, use):
    array = host_device.put(VALUES, memory="host")
    view = array.memory.view
    gate = threading.Event()
    host_device.context.compute.add_callback(lambda: gate.wait(60))
    host_device.context.compute.add_callback(
        lambda: view.__setitem__(slice(None), bytes(len(view)))
    )
    closing = threading.Thread(target=host_device.factory.close)
    closing.start()
    try:
        wait_until(lambda: has_begun_to_close(host_device))
        with pytest.raises(ClosedError):
            use(array)
    finally:
        gate.set()
        closing.join()

    np.testing.assert_array_equal(np.from_dlpack(array), VALUES * 0)
    use(array)
