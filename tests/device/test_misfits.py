"""Sizes, shapes, offsets, callbacks, names that cannot be: refused at once, with what was found."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf import PluginService
from modular_tf.errors import InvalidArgumentError

NUMBERS_EXPECTED = "expected a whole number, found"


def refused(call, wrongs, error, says):
    for wrong in wrongs:
        with pytest.raises(error, match=says) as raised:
            call(wrong)
        assert repr(wrong) in str(raised.value) or error is TypeError


def test_sizes_and_shapes_are_whole_numbers(cpu):
    for allocate in (cpu.allocate, cpu.allocate_host, cpu.allocate_unified):
        refused(allocate, ("8", 1.5, None, [8]), InvalidArgumentError, NUMBERS_EXPECTED)
    refused(
        lambda shape: cpu.empty(shape, "float32"),
        ((2.9,), 2.9, "8", ("2",), (2, None), np.float32(2)),
        InvalidArgumentError,
        "expected a whole number, or a sequence",
    )

    assert len(cpu.allocate(np.int64(8))) == 8
    assert cpu.empty((np.int32(2), 3), "float32").shape == (2, 3)
    assert cpu.empty(np.int64(2), "float32").shape == (2,)


def test_arguments_of_work_have_their_kinds(cpu):
    memory, data, array = cpu.allocate(8), bytearray(8), cpu.put(np.zeros(2, "float32"))
    with cpu.create_stream() as stream, cpu.create_event() as event:
        event.record(stream)
        for call in (
            lambda wrong: memory.part(wrong, 2),
            lambda wrong: memory.part(0, wrong),
            lambda wrong: stream.memcpy_htod(memory, data, wrong),
            lambda wrong: stream.memcpy_htod(memory, data, 4, offset=wrong),
            lambda wrong: stream.memcpy_dtoh(data, memory, 4, offset=wrong),
            lambda wrong: stream.memcpy_dtod(memory, memory, wrong),
            lambda wrong: stream.mem_zero(memory, wrong),
            lambda wrong: stream.mem_zero(memory, offset=wrong),
            lambda wrong: stream.memset(memory, wrong),
            lambda wrong: stream.memset32(memory, wrong),
            lambda wrong: stream.memset32(memory, 1, wrong),
            lambda wrong: stream.memset32(memory, 1, offset=wrong),
            lambda wrong: cpu.memcpy_htod(memory, data, wrong),
            lambda wrong: cpu.memcpy_dtoh(data, memory, 4, wrong),
            lambda wrong: cpu.memcpy_dtod(memory, memory, source_offset=wrong),
        ):
            refused(call, (1.5, "1", [8], b"x"), InvalidArgumentError, NUMBERS_EXPECTED)
        refused(stream.add_callback, (5, None, "f"), TypeError, "add_callback: expected a function")
        for wait in (cpu.synchronize, stream.block_until_done, event.wait):
            wrongs = ("x", [8], b"x", float("nan"), float("inf"))
            refused(wait, wrongs, InvalidArgumentError, "timeout: expected a number of sec")
        for call, says in {
            lambda wrong: stream.memcpy_htod(memory, wrong): "a host buffer: expected an object",
            lambda wrong: stream.memcpy_dtoh(wrong, memory): "a host buffer: expected an object",
            lambda wrong: cpu.memcpy_htod(memory, wrong): "a host buffer: expected an object",
            lambda wrong: cpu.memcpy_dtoh(wrong, memory): "a host buffer: expected an object",
            array.copy_to: "copy_to: expected a device",
            lambda wrong: cpu.context.copy_to_device(wrong, memory, memory): "the context of a de",
        }.items():
            refused(call, (5, "x", [8], None), InvalidArgumentError, says)
        refused(array.to_numpy, (5, "x", [8]), InvalidArgumentError, "out: expected a numpy array")
        stream.block_until_done()
    with pytest.raises(InvalidArgumentError, match="reach outside of a memory of 8 bytes"):
        memory.part(np.int64(2**63 - 10), np.int64(100))  # whose sum overflows


def test_whole_numbers_of_numpy_are_sizes_offsets_and_values(cpu):
    """numpy's short ones do not hold what is added to them, and cffi takes none without int()."""
    memory, other, data = cpu.allocate(1024), cpu.allocate(1024), bytearray(range(8)) * 128
    four, eight = np.uint8(4), np.uint8(8)
    with cpu.create_stream() as stream:
        stream.memset(memory, eight)
        stream.memset(memory, four, eight, eight)
        stream.memset32(memory, four, eight, offset=eight)
        stream.mem_zero(memory, offset=eight)
        stream.memcpy_htod(memory, data, eight, four)
        stream.memcpy_dtod(other, memory, eight, target_offset=four)
        stream.memcpy_dtoh(data, memory, eight, four)
        cpu.memcpy_htod(memory, data, eight, four)
        cpu.memcpy_dtod(other, memory, eight, target_offset=four)
        cpu.memcpy_dtoh(data, memory, eight, four)
        stream.block_until_done()
    assert data[:8] == bytes([0, 1, 2, 3, 4, 5, 6, 7])
    part = memory.part(four, eight)
    assert (part.address - memory.address, type(len(part))) == (4, int)


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
