"""`numpy.asarray` of arrays and tensors: never an array with one object in it."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.abi.dlpack_devices import HOST
from modular_tf.abi.dlpack_elements import ELEMENT_TYPES, by_name
from modular_tf.errors import ClosedError
from modular_tf.native.tensor import Tensor
from modular_tf.service.service import PluginService

OF_NUMPY = [element for element in ELEMENT_TYPES if element.module is not None]
VALUES = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize("memory", ["device", "host", "unified"])
def test_every_array_has_its_elements(cpu, memory):
    for element in OF_NUMPY:
        values = np.arange(6).reshape(2, 3).astype(element.to_numpy())
        seen = np.asarray(cpu.put(values, memory=memory))
        assert (seen.shape, seen.dtype) == (values.shape, values.dtype)
        assert seen.tobytes() == values.tobytes()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4"])
def test_tensors_of_elements_that_buffers_lack_are_copied(cpu, name):
    values = np.array([1, -2, 3]).astype(by_name(name).to_numpy())
    tensor = cpu.put(values).to_host()

    assert np.asarray(tensor).tolist() == values.tolist()


def test_packed_elements_with_gaps_and_in_the_other_order_are_copied():
    packed = np.array([0x21, 0x43], np.uint8)
    tensor = Tensor(packed.ctypes.data, (4,), None, by_name("int4").dtype, HOST, packed)
    halves = np.arange(6, dtype=np.uint16)
    backwards = Tensor(
        halves.ctypes.data + 10, (3,), (-2,), by_name("bfloat16").dtype, HOST, halves
    )

    assert np.asarray(tensor).tolist() == [1, 2, 3, 4]
    assert np.asarray(backwards).view(np.uint16).tolist() == [5, 3, 1]


def test_a_copy_is_writable_and_of_its_own(elsewhere):
    there = elsewhere.put(VALUES)
    np.asarray(there)[:] = 7

    assert (there.to_numpy() == VALUES).all()


def test_what_the_host_can_read_is_viewed_and_what_must_be_copied_is_no_view(cpu, elsewhere):
    for memory in ("device", "host"):
        there = cpu.put(VALUES, memory=memory)
        np.asarray(there, copy=False)[0, 0] = 7
        assert there.to_numpy()[0, 0] == 7
    with pytest.raises(ValueError, match=r"float32 .* as a copy only"):
        np.asarray(elsewhere.put(VALUES), copy=False)


def test_shape_and_dtype_are_what_was_asked_for(cpu):
    assert np.asarray(cpu.put(np.float32(3))).shape == ()
    assert np.asarray(cpu.empty((0, 3), "float32")).shape == (0, 3)
    assert np.asarray(cpu.put(VALUES), dtype="i8").dtype == np.int64
    assert np.array(cpu.put(VALUES), copy=True).dtype == np.float32
    assert cpu.put(VALUES).__array__().tolist() == VALUES.tolist()  # as numpy 1 asks
    assert np.stack([cpu.put(VALUES)] * 2).tolist() == np.stack([VALUES] * 2).tolist()
    with pytest.raises(TypeError, match="complex32"):
        np.asarray(cpu.empty(4, "complex32"))


def test_the_end_of_the_service_is_told_apart_from_a_closed_array():
    with PluginService() as service:
        service.load("host_device")
        there = service.device("CPU:0").put(VALUES)
        closed = service.device("CPU:0").put(VALUES)
        closed.close()

    for use in (there.to_numpy, lambda: there.address, lambda: np.asarray(there)):
        with pytest.raises(ClosedError, match="the device of the array was closed; copy it to"):
            use()
    with pytest.raises(ClosedError, match=r"CPU:0: the array was closed$"):
        closed.to_numpy()
