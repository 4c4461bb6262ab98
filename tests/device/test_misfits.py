"""Sizes, shapes, offsets, callbacks, streams that cannot be: told at once, with what was found."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf import PluginService
from modular_tf.errors import InvalidArgumentError


@pytest.fixture(scope="module")
def device(cpu):
    return cpu


@pytest.mark.parametrize("wrong", ["8", 1.5, None, [8]])
@pytest.mark.parametrize("allocate", ["allocate", "allocate_host", "allocate_unified"])
def test_a_size_is_a_whole_number(device, allocate, wrong):
    with pytest.raises(InvalidArgumentError, match="expected a whole number, found") as raised:
        getattr(device, allocate)(wrong)
    assert repr(wrong) in str(raised.value)


@pytest.mark.parametrize("shape", [(2.9,), 2.9, "8", ("2",), (2, None), np.float32(2)])
def test_a_shape_has_whole_numbers(device, shape):
    with pytest.raises(
        InvalidArgumentError, match="expected a whole number, or a sequence"
    ) as told:
        device.empty(shape, "float32")
    assert repr(shape) in str(told.value)


def test_numbers_of_numpy_are_whole_numbers(device):
    assert len(device.allocate(np.int64(8))) == 8
    assert device.empty((np.int32(2), 3), "float32").shape == (2, 3)
    assert device.empty(np.int64(2), "float32").shape == (2,)


@pytest.mark.parametrize("wrong", ["1", 1.5])
def test_offsets_and_sizes_of_copies_are_whole_numbers(device, wrong):
    memory, data = device.allocate(8), bytearray(8)
    with device.create_stream() as stream:
        for call in (
            lambda: memory.part(wrong, 2),
            lambda: memory.part(0, wrong),
            lambda: stream.memcpy_htod(memory, data, wrong),
            lambda: stream.memcpy_htod(memory, data, 4, offset=wrong),
            lambda: stream.memcpy_dtoh(data, memory, 4, offset=wrong),
            lambda: stream.memcpy_dtod(memory, memory, wrong),
            lambda: stream.mem_zero(memory, wrong),
            lambda: stream.mem_zero(memory, offset=wrong),
            lambda: device.memcpy_htod(memory, data, wrong),
            lambda: device.memcpy_dtoh(data, memory, 4, wrong),
            lambda: device.memcpy_dtod(memory, memory, 4, source_offset=wrong),
        ):
            with pytest.raises(InvalidArgumentError, match="expected a whole number, found"):
                call()


@pytest.mark.parametrize("wrong", [5, None, "function"])
def test_a_callback_is_a_function(device, wrong):
    with device.create_stream() as stream:
        with pytest.raises(TypeError, match="add_callback: expected a function"):
            stream.add_callback(wrong)
        stream.block_until_done()


def test_values_of_fills_are_whole_numbers(device):
    memory = device.allocate(8)
    with device.create_stream() as stream:
        for call in (
            lambda value: stream.memset(memory, value),
            lambda value: stream.memset32(memory, value),
            lambda value: stream.memset32(memory, 1, value),
            lambda value: stream.memset32(memory, 1, offset=value),
            lambda value: device.memcpy_dtod(memory, memory, source_offset=value),
        ):
            for wrong in (1.5, "x", [8], b"x", object()):
                with pytest.raises(InvalidArgumentError, match="expected a whole number, found"):
                    call(wrong)


@pytest.mark.parametrize("wrong", ["x", [8], b"x", float("nan"), float("inf")])
def test_a_timeout_is_a_number(device, wrong):
    with device.create_stream() as stream, device.create_event() as event:
        event.record(stream)
        for call in (device.synchronize, stream.block_until_done, event.wait):
            with pytest.raises(InvalidArgumentError, match="timeout: expected a number of seconds"):
                call(wrong)


@pytest.mark.parametrize("wrong", [5, "x", [8], None])
def test_what_has_no_bytes_is_no_host_buffer(device, wrong):
    memory = device.allocate(8)
    with device.create_stream() as stream:
        for call in (
            lambda: stream.memcpy_htod(memory, wrong),
            lambda: stream.memcpy_dtoh(wrong, memory),
            lambda: device.memcpy_htod(memory, wrong),
            lambda: device.memcpy_dtoh(wrong, memory),
            lambda: device.context.copy_host_to_device(memory, wrong),
        ):
            with pytest.raises(InvalidArgumentError, match="a host buffer: expected an object"):
                call()


@pytest.mark.parametrize("wrong", [5, "CPU:0", [8], None])
def test_what_is_no_device_takes_no_copy(device, wrong):
    array = device.put(np.zeros(2, "float32"))
    with pytest.raises(InvalidArgumentError, match="copy_to: expected a device"):
        array.copy_to(wrong)
    with pytest.raises(InvalidArgumentError, match="expected the context of a device"):
        device.context.copy_to_device(wrong, device.allocate(8), device.allocate(8))
    if wrong is not None:
        with pytest.raises(InvalidArgumentError, match="out: expected a numpy array"):
            array.to_numpy(out=wrong)


class _Whole:
    """A whole number of nobody's."""

    def __init__(self, value):
        self._value = value

    def __index__(self):
        return self._value


@pytest.mark.parametrize("number", [np.uint8, np.int64, _Whole])
def test_whole_numbers_of_every_kind_are_sizes_offsets_and_values(device, number):
    """numpy's short ones do not hold what is added to them, and cffi takes none without int()."""
    memory, other, data = device.allocate(1024), device.allocate(1024), bytearray(range(8)) * 128
    four, eight = number(4), number(8)
    with device.create_stream() as stream:
        for call in (
            lambda: stream.memset(memory, eight),
            lambda: stream.memset(memory, four, eight, eight),
            lambda: stream.memset32(memory, four, eight, offset=eight),
            lambda: stream.memset32(memory, four, offset=eight),
            lambda: stream.mem_zero(memory, offset=eight),
            lambda: stream.memcpy_htod(memory, data, eight, four),
            lambda: stream.memcpy_dtod(other, memory, source_offset=eight),
            lambda: stream.memcpy_dtod(other, memory, eight, target_offset=four),
            lambda: stream.memcpy_dtoh(data, memory, eight, four),
            lambda: device.memcpy_htod(memory, data, eight, four),
            lambda: device.memcpy_dtod(other, memory, source_offset=eight),
            lambda: device.memcpy_dtod(other, memory, eight, target_offset=four),
            lambda: device.memcpy_dtoh(data, memory, eight, four),
        ):
            call()
        stream.block_until_done()
    assert data[:8] == bytes([0, 1, 2, 3, 4, 5, 6, 7])
    part = memory.part(four, eight)
    assert (part.address - memory.address, type(len(part))) == (4, int)


def test_the_sum_of_offset_and_size_does_not_overflow(device):
    memory = device.allocate(100)
    with pytest.raises(InvalidArgumentError, match="reach outside of a memory of 100 bytes"):
        memory.part(np.int64(2**63 - 10), np.int64(100))


def test_names_are_texts():
    with PluginService() as service:
        service.load("host_device", "ram_filesystem")
        uses = (
            service.device,
            service.filesystem,
            service.filesystem_for,
            service.op,
            service.device("CPU:0").op,
            lambda name: service.instance(name, name="x", environment={}),
            lambda name: service.instance("ram", name=name, environment={}),
            lambda name: service.instance("ram", name="x", environment=name),
            lambda name: service.shared_instance("ram", name),
            lambda name: service.shared_instance(name, {}),
        )
        for wrong in (5, 1.5, [8], b"x", object()):
            for use in uses:
                with pytest.raises(InvalidArgumentError, match="expected"):
                    use(wrong)
            assert service.devices(wrong) == []
            if not isinstance(wrong, bytes):
                for use in (service.load, service.entry, service.why):
                    with pytest.raises(InvalidArgumentError, match="expected a name or a path"):
                        use(wrong)
        with pytest.raises(InvalidArgumentError, match="expected a text, found None"):
            service.filesystem(None)
