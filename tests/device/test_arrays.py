"""Arrays there and back: every kind of source, shape, element type and memory."""

from __future__ import annotations

import array
import ctypes
import mmap

import numpy as np
import pytest

from modular_tf.abi.dlpack_elements import ELEMENT_TYPES
from modular_tf.device.device import DeviceArray
from modular_tf.errors import InvalidArgumentError, OutOfMemoryError

MIB = 1 << 20
OF_NUMPY = [element for element in ELEMENT_TYPES if element.module is not None]


def pattern(n_bytes):
    return (bytes(range(251)) * (n_bytes // 251 + 1))[:n_bytes]


def test_bytes_come_back_as_they_were(cpu):
    for memory, n_bytes in (
        ("device", 0),
        ("device", 17 * MIB),  # more than one piece
        ("host", 4096),
        ("unified", 0),
    ):
        data = pattern(n_bytes)
        source = bytearray(data)
        with cpu.put(source, memory=memory) as there:
            source[:] = bytes(n_bytes)
            assert (there.shape, there.dtype, there.nbytes) == ((n_bytes,), "uint8", n_bytes)
            assert there.to_bytes() == there.to_memoryview() == data
            assert there.to_numpy().tobytes() == data


@pytest.mark.parametrize("element", OF_NUMPY, ids=lambda element: element.name)
def test_every_element_type_of_numpy_and_ml_dtypes(cpu, element):
    dtype = element.to_numpy()
    values = np.arange(6).reshape(2, 3).astype(dtype)
    with cpu.put(values) as there:
        assert (there.dtype, there.shape) == (element.name, (2, 3))
        back = there.to_numpy()
        assert back.dtype == dtype
        assert back.tobytes() == values.tobytes()
    with cpu.empty((2, 3), dtype) as room:  # of numpy's, which name elements too
        room.copy_from(values)
        assert room.to_numpy().tobytes() == values.tobytes()
        assert room.dlpack_dtype == element.dtype


VALUES = {
    "strided": np.arange(24, dtype="f4").reshape(2, 3, 4)[:, ::2, ::-1],
    "fortran": np.asfortranarray(np.arange(6, dtype="i8").reshape(2, 3)),
    "broadcast": np.broadcast_to(np.float64(2.5), (3, 4)),
    "empty": np.zeros((0, 3), "c16"),
    "0-d": np.array(7, "u4"),
    "scalar": np.float16(1.5),
    "transposed part": np.arange(24).reshape(4, 6)[::2, 1::2].T,
    "overlapping": np.lib.stride_tricks.sliding_window_view(np.arange(9, dtype="i2"), 4),
    "misaligned": np.zeros((3, 4), [("a", "i1"), ("b", "f4")])["b"],
    "64 dimensions": np.zeros((0,) * 64, "i1"),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_shapes_and_strides_of_numpy(cpu, values):
    with cpu.put(values) as there:
        assert there.shape == values.shape
        back = there.to_numpy()
        np.testing.assert_array_equal(back, values)
        assert back.dtype == values.dtype
        assert there.to_bytes() == values.tobytes()


def test_python_buffers(cpu):
    mapped = mmap.mmap(-1, 16)
    mapped.write(b"sixteen bytes!!!")
    for found, dtype, shape in [
        (bytearray(b"abc"), "uint8", (3,)),
        (array.array("d", [1.5, -2]), "float64", (2,)),
        (array.array("h", [1, -2, 3]), "int16", (3,)),
        (memoryview(b"abcdef")[::-2], "uint8", (3,)),
        (memoryview(bytes(24)).cast("I", (2, 3)), "uint32", (2, 3)),
        (memoryview(b"\1").cast("?"), "bool", (1,)),
        (mapped, "uint8", (16,)),
        ((ctypes.c_int32 * 4)(1, 2, 3, 4), "int32", (4,)),
    ]:
        with cpu.put(found) as there:
            assert (there.dtype, there.shape) == (dtype, shape)
            assert there.to_bytes() == memoryview(found).tobytes()
            assert there.to_memoryview().shape == shape
    mapped.close()
    with cpu.allocate_host(5) as pinned:
        pinned.view[:] = b"hello"
        assert cpu.put(pinned).to_bytes() == b"hello"


def test_an_array_waits_for_a_thread_that_is_importing_numpy(run_python):
    """It met the module with half of its names, and raised an AttributeError."""
    run_python(
        """
        import importlib, sys, threading
        from modular_tf import PluginService

        class Slow:
            def find_spec(self, name, path, target=None):
                if name.startswith("numpy.") and not begun.is_set():
                    begun.set()
                    goes_on.wait(60)

        begun, goes_on = threading.Event(), threading.Event()
        with PluginService() as service:
            service.load("host_device")
            device = service.device("CPU:0")
            assert "numpy" not in sys.modules
            sys.meta_path.insert(0, Slow())
            importing = threading.Thread(target=importlib.import_module, args=("numpy",))
            importing.start()
            assert begun.wait(60)
            threading.Timer(0.2, goes_on.set).start()
            assert device.put(b"abcd").to_numpy().tolist() == [97, 98, 99, 100]
            importing.join()
        """
    )


def test_numpy_is_not_needed(run_python):
    run_python(
        """
        import sys
        sys.modules["numpy"] = sys.modules["ml_dtypes"] = None  # importing them fails

        import pytest
        from array import array
        from modular_tf import PluginService

        with PluginService() as service:
            service.load("host_device")
            device = service.device("CPU:0")
            there = device.put(array("f", [1.5, -2]))
            there.copy_from(array("f", [2.5, -2])[::-1])
            assert there.copy_to(device).to_memoryview().tolist() == [-2.0, 2.5]
            assert device.put(memoryview(there.to_host())[::-1]).tolist() == [2.5, -2.0]
            with pytest.raises(ModuleNotFoundError):
                there.to_numpy()
            for name in ("bfloat16", "int4"):
                assert device.put(device.empty((3, 5), name)).dtype == name
        """
    )


class Producer:
    """A producer that has only its DLPack methods, which give what they are told to."""

    def __init__(self, export, device=(1, 0)):
        self._export = export
        self._device = device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **wishes):
        return self._export(**wishes)


@pytest.mark.parametrize("turn", [np.transpose, lambda values: values[:, ::2], np.copy])
def test_a_tensor_in_another_order_is_put_in_c_order(cpu, turn):
    values = turn(np.arange(12, dtype="f4").reshape(3, 4))
    with cpu.put(Producer(values.__dlpack__)) as there:
        np.testing.assert_array_equal(there.to_numpy(), values)
        assert there.to_bytes() == values.tobytes()


def test_a_negation_still_to_be_done_is_refused_before_anything_is_copied(cpu):
    values = np.arange(3, dtype="f4")
    lazy = Producer(values.__dlpack__)
    lazy.is_neg = lambda: True  # as torch's tensors say

    for copy in (cpu.put, cpu.put(values).copy_from):
        with pytest.raises(InvalidArgumentError, match=r"use tensor.resolve_neg\(\)$"):
            copy(lazy)


def test_into_given_memory(cpu):
    values = np.arange(12, dtype="f4").reshape(3, 4)
    with cpu.put(values) as there:
        out = np.zeros_like(values)
        assert there.to_numpy(out) is out
        np.testing.assert_array_equal(out, values)
        there.copy_from(values + 1)
        np.testing.assert_array_equal(there.to_numpy(), values + 1)
        for wrong in (out.T, out.astype("f8"), out[:, ::2], out.reshape(-1)):
            with pytest.raises(InvalidArgumentError, match=r"expected float32 \(3, 4\)"):
                there.to_numpy(wrong)
        for other in ("float64", "int32"):
            with pytest.raises(InvalidArgumentError, match=rf"{other} \(3, 4\).*float32 \(3, 4\)"):
                there.copy_from(out.astype(other))
        with pytest.raises(InvalidArgumentError, match=r"float32 \(12,\)"):
            there.copy_from(out.reshape(-1))
        np.testing.assert_array_equal(there.to_numpy(), values + 1)


@pytest.mark.parametrize(
    ("found", "error", "says"),
    [
        (np.array([1], ">i4"), InvalidArgumentError, "other byte order; give"),
        (memoryview(np.array([1, 2], ">u2")), InvalidArgumentError, "'>H'"),
        (np.array(["x"]), InvalidArgumentError, "U1"),
        (np.array([None]), InvalidArgumentError, "O"),
        (np.zeros(2, [("a", "i4")]), InvalidArgumentError, "i4"),
        (memoryview(b"12345678").cast("P"), InvalidArgumentError, "'P'"),
        (None, TypeError, "NoneType"),
    ],
)
def test_what_is_no_array_is_refused(cpu, found, error, says):
    with pytest.raises(error, match=says):
        cpu.put(found)


@pytest.mark.parametrize(
    ("device", "capsule", "says"),
    [
        ((5, 0), None, r"'Producer' object .* unknown DLPack device \(5, 0\)"),
        ((1, 0), "no capsule", "'Producer' object .* gave nothing to take"),
        ((12, 0), None, "gave nothing to take"),
    ],
)
def test_producers_that_say_nonsense_are_named(cpu, device, capsule, says):
    producer = Producer(lambda **_wishes: capsule, device)
    for memory in ("device", "host", "unified"):
        with pytest.raises(InvalidArgumentError, match=says):
            cpu.put(producer, memory=memory)


def test_what_no_array_can_be_is_refused(cpu):
    for shape, dtype, says in [
        ((-1,), "float32", "none below 0"),
        ((1,) * 65, "float32", "at most 64"),
        ((1,), "float31", "float31"),
        ((1,), "M8[s]", "M8"),
        ((1 << 40, 1 << 40), "float32", "larger than memory"),
        ((1 << 70,), "float32", "larger than memory"),
        ((1 << 62,), (0, 4, 3), "larger than memory"),
        ((1,), (0, 256, 1), "256"),
    ]:
        with pytest.raises(InvalidArgumentError, match=says):
            cpu.empty(shape, dtype)
    with pytest.raises(InvalidArgumentError, match="'pinned'"):
        cpu.empty(3, "int8", memory="pinned")
    for n_bytes in (15, 17):
        says = f"16 bytes .* memory of {n_bytes}"
        with cpu.allocate(n_bytes) as room, pytest.raises(InvalidArgumentError, match=says):
            DeviceArray(cpu, room, (4,), (2, 32, 1))
    with pytest.raises(OutOfMemoryError) as caught:
        cpu.empty(1 << 60, "int8")
    assert isinstance(caught.value, MemoryError)
    assert cpu.put(b"still works").to_bytes() == b"still works"


def test_an_array_describes_itself(cpu):
    with cpu.put(np.zeros((3, 4), "f4")) as there:
        values = [[0.0] * 4] * 3
        assert repr(there) == f"<DeviceArray float32 (3, 4) on CPU:0: {values}>"
        assert (there.device, there.ndim, there.strides, len(there)) == (cpu, 2, (4, 1), 3)
        with pytest.raises(TypeError, match="without dimensions"):
            len(cpu.put(np.float32(1)))
    assert repr(there) == "<DeviceArray float32 (3, 4) on CPU:0, closed>"
