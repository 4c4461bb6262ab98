"""Have kernels throw in every function that the host calls, and keep what they were given.

Argument: the library of the kernels. What does not end as it should raises.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from modular_tf import PluginService
from modular_tf.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ModularTFError,
)
from modular_tf.native.ffi import lib

_path = sys.argv[1]
_FLOATS = np.arange(3, dtype="float32")


class _Plugin:
    """The functions of the plugin as it was mapped, which may be from a copy of its file."""

    def __init__(self, library):
        self._library = library

    def __getattr__(self, name):
        return ctypes.CFUNCTYPE(ctypes.c_int)(self._library.symbol(name))


def deallocators(device, _plugin):
    """Have memory of a plugin given back to a function that throws."""
    for op, thrown in (
        ("MtfGiveBackThrowing", "threw: no memory of mine"),
        ("MtfGiveBackThrowingNumber", "threw an exception of an unknown type"),
    ):
        with pytest.raises(InternalError, match=thrown):
            device.op(op)()
    device.op("MtfOutputOfThrowing")().close()
    gc.collect()


def callbacks(device, _plugin):
    """Have functions throw that the host calls for variables; it deletes what it lent them."""
    variable = device.variable("float32")
    variable.assign(_FLOATS)
    for _ in range(2):
        for op, arguments in (
            ("MtfAssignThrowing", (variable, _FLOATS)),
            ("MtfAssignThrowingNumber", (variable, _FLOATS)),
            ("MtfUpdateThrowing", (variable, _FLOATS)),
            ("MtfTemporaryThrowing", ()),
        ):
            with pytest.raises(InternalError, match=r"exception|no copy"):
                device.op(op)(*arguments)
            assert lib.mtf_kernel_tensor_handles() == 0, op
    assert variable.value().to_numpy().tolist() == [0, 1, 2]


def locks(device, _plugin):
    """Throw with a variable locked."""
    variable = device.variable("float32")
    variable.assign(_FLOATS)
    with pytest.raises(ModularTFError, match="locked"):
        device.op("MtfLockAndThrow")(variable)
    variable.assign(_FLOATS)


def kept_inputs(device, _plugin):
    """Keep an input in a call that fails: its memory stays until the kernel lets go of it."""
    for op in ("MtfKeepAndFail", "MtfKeepAndThrow", "MtfKeepAndFailLater"):
        array = device.put(_FLOATS)
        memory = weakref.ref(array.device_memory)
        with pytest.raises(ModularTFError, match="kept, and"):
            device.op(op)(array)
        del array
        gc.collect()
        assert memory() is not None, op
        device.op("MtfLetGo")(_FLOATS)
        with pytest.raises(ModularTFError):
            device.op("MtfKeepAndFail")(_FLOATS)  # looks for what was let go
        gc.collect()
        assert memory() is None, op


def create(device, plugin):
    """Throw instead of making an object: there is none to delete."""
    with pytest.raises(ModularTFError, match="no object"):
        device.op("MtfThrowingCreate")()
    assert plugin.mtf_test_deleted_null() == 0


def abandoned(device, plugin):
    """Leave an asynchronous kernel that is not done: what it uses stays for ever."""

    def interrupt():
        while plugin.mtf_test_live_objects() == 0:  # an earlier one may be lost in a destructor
            time.sleep(0.01)
        time.sleep(0.3)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        device.op("MtfNeverDone")(_FLOATS)
    with pytest.raises(DeadlineExceededError, match="is not done"):
        _service.close()
    gc.collect()
    assert plugin.mtf_test_live_objects() == 1
    assert plugin.mtf_test_use_and_end() != 0


def shapes(device, _plugin):
    """Ask for tensors with shapes that there are not."""
    with pytest.raises(InvalidArgumentError, match="expected 0 to 254 sizes, found NULL for 2"):
        device.op("MtfAsk")()


with PluginService() as _service:
    _service.load("host_device")
    _service.load(_path)
    _plugin = _Plugin(_service.entry(_path).library)
    for _case in (deallocators, callbacks, locks, kept_inputs, create, shapes, abandoned):
        _case(_service.device("CPU:0"), _plugin)
print("survived")
