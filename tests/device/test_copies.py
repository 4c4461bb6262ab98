"""Copies and fills: the order of calls, the bytes, the bounds, what stays alive."""

from __future__ import annotations

import gc
import threading
import weakref
from array import array

import pytest

from modular_tf.device.executor import DeviceContext
from modular_tf.errors import ClosedError, InvalidArgumentError, ModularTFError
from tests.fixtures.interrupts import call_at


def read(device, memory):
    out = bytearray(memory.size)
    device.memcpy_dtoh(out, memory)
    return bytes(out)


# -- the device context; test_copy_sequences.py has the calls of its copies ----------------------


def test_streams_are_created_lazily_and_in_order(recording, device):
    context = DeviceContext(device.executor, 4)
    assert recording.count("create_stream") == 0
    streams = context.streams
    assert recording.count("create_stream") == len(streams) == 7
    named = context.compute, context.host_to_device, context.device_to_host
    assert (*named, *context.device_to_device) == streams
    for number in (0, 5):
        with pytest.raises(InvalidArgumentError, match="expected 1 to 4"):
            DeviceContext(device.executor, number)


def test_copies_between_plugins_stay_inside_both(recording, device, host_device):
    small, large = device.allocate(4), host_device.allocate(8)
    recording.clear()
    for target, source, n_bytes in ((small, large, None), (large, small, 5), (small, large, -1)):
        here, there = (host_device, device) if source is large else (device, host_device)
        with pytest.raises(InvalidArgumentError, match="outside"):
            here.context.copy_to_device(there.context, target, source, n_bytes)
    assert recording.calls == []


def test_what_belongs_to_two_plugins_is_not_mixed(device, host_device):
    stream, memory = host_device.create_stream(), device.allocate(4)
    for mix in (
        lambda: stream.memcpy_htod(memory, b"abcd"),
        lambda: stream.wait_for(device.create_stream()),
        lambda: stream.wait_event(device.create_stream().record_event()),
        lambda: host_device.memcpy_dtoh(bytearray(4), memory),
    ):
        with pytest.raises(InvalidArgumentError, match="two plugins"):
            mix()


# -- bytes -------------------------------------------------------------------------------------


def test_offsets_and_parts(host_device):
    memory = host_device.allocate(8)
    host_device.memcpy_htod(memory, b"........")
    host_device.memcpy_htod(memory, b"abXX", n_bytes=2, offset=3)
    part = memory.part(3, 2)
    memory.close()
    assert read(host_device, part) == b"ab"
    with pytest.raises(InvalidArgumentError, match="outside"):
        part.part(1, 2)


@pytest.mark.parametrize("stands_in", [False, True], ids=["plugin", "through the host"])
def test_copies_on_a_device(recording, stands_in):
    if stands_in:
        recording.leave_out("memcpy_dtod", "sync_memcpy_dtod")
    with recording.devices() as [device, _]:
        one, two, three = device.allocate(4), device.allocate(4), device.allocate(4)
        device.memcpy_htod(one, b"abcd")
        with device.create_stream() as stream:
            stream.memcpy_dtod(two, one)
            stream.memcpy_dtod(two, one, 1, target_offset=3, source_offset=0)
        device.memcpy_dtod(three, two, 3, target_offset=1, source_offset=0)
        assert read(device, two) == b"abca"
        assert read(device, three)[1:] == b"abc"
        assert ("memcpy_dtod s1 4" in recording.calls) is not stands_in


@pytest.mark.parametrize("stands_in", [False, True], ids=["plugin", "by copies"])
def test_fills(recording, stands_in):
    if stands_in:
        recording.leave_out("mem_zero", "memset", "memset32")
    with recording.devices() as [device, _]:
        memory = device.allocate(16)
        with device.create_stream() as stream:
            stream.memset(memory, 0xAB)
            stream.mem_zero(memory, 4)
            stream.memset32(memory, 0x01020304, 8, 8)
            stream.block_until_done()
        words = array("I", read(device, memory))
        assert list(words) == [0, 0xABABABAB, 0x01020304, 0x01020304]
        slots = [recording.count(slot) for slot in ("mem_zero", "memset", "memset32")]
        assert slots == ([0, 0, 0] if stands_in else [1, 1, 1])


def test_a_fill_by_copies_has_a_bounded_pattern(recording):
    recording.leave_out("memset")
    size = (2 << 20) + 5
    with recording.devices() as [device, _]:
        memory = device.allocate(size)
        with device.create_stream() as stream:
            stream.memset(memory, 7)
            stream.block_until_done()
        assert read(device, memory) == b"\7" * size
        copies = [call.split()[2] for call in recording.calls if call.startswith("memcpy_htod")]
        assert copies == [str(1 << 20), str(1 << 20), "5"]


# -- bounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_bytes", "offset"), [(5, 0), (4, 1), (1, 4), (-1, 0), (4, -1)])
def test_copies_stay_inside_the_memory(recording, device, n_bytes, offset):
    memory, stream, data = device.allocate(4), device.create_stream(), bytearray(8)
    recording.clear()
    for copy in (
        lambda: stream.memcpy_htod(memory, data, n_bytes, offset),
        lambda: stream.memcpy_dtoh(data, memory, n_bytes, offset),
        lambda: device.memcpy_htod(memory, data, n_bytes, offset),
        lambda: device.memcpy_dtoh(data, memory, n_bytes, offset),
        lambda: stream.mem_zero(memory, n_bytes, offset),
        lambda: stream.memcpy_dtod(memory, memory, n_bytes, target_offset=offset),
        lambda: device.memcpy_dtod(memory, memory, n_bytes, source_offset=offset),
    ):
        with pytest.raises(InvalidArgumentError):
            copy()
    assert recording.calls == []


def test_what_no_copy_or_fill_can_be_is_refused(device):
    memory, stream = device.allocate(8), device.create_stream()
    for use, error, says in (
        (lambda: device.memcpy_htod(memory, b"abcd", 5), InvalidArgumentError, "buffer of 4"),
        (lambda: device.memcpy_dtoh(b"read-only", memory), InvalidArgumentError, "host buffer"),
        (
            lambda: device.memcpy_htod(memory, memoryview(b"abcdefgh")[::2]),
            InvalidArgumentError,
            "host buffer",
        ),
        (lambda: stream.memcpy_htod(b"target", b"source"), TypeError, None),
        (lambda: stream.memset(memory, -1), InvalidArgumentError, "no byte"),
        (lambda: stream.memset(memory, 256), InvalidArgumentError, "no byte"),
        (lambda: stream.memset32(memory, 1, 3), InvalidArgumentError, "multiple"),
        (lambda: stream.memset32(memory, 1 << 32), InvalidArgumentError, "32-bit"),
    ):
        with pytest.raises(error, match=says):
            use()


# -- what failed copies keep; test_every_slot.py has their errors --------------------------------

FAILING = {
    "memcpy_htod": lambda d, s, m, view, size: s.memcpy_htod(m, view, size),
    "memcpy_dtoh": lambda d, s, m, view, size: s.memcpy_dtoh(view, m, size),
    "sync_memcpy_htod": lambda d, s, m, view, size: d.memcpy_htod(m, view, size),
    "sync_memcpy_dtoh": lambda d, s, m, view, size: d.memcpy_dtoh(view, m, size),
    "memcpy_dtod": lambda d, s, m, view, size: s.memcpy_dtod(m, m, size),
    "memset": lambda d, s, m, view, size: s.memset(m, 1, size),
}


@pytest.mark.parametrize("slot", FAILING)
def test_a_copy_that_fails_keeps_nothing_nor_does_its_error(recording, device, slot):
    """Python 3.11.7 crashes when its collector finds the bytes in a traceback (gh-77894)."""
    stream, memory, view = device.create_stream(), device.allocate(4), memoryview(bytearray(4))
    recording.fail(slot, 5)
    with pytest.raises(ModularTFError) as by_plugin:
        FAILING[slot](device, stream, memory, view, 4)
    with pytest.raises(InvalidArgumentError) as by_size:
        FAILING[slot](device, stream, memory, view, 5)
    memory.close()
    with pytest.raises(ClosedError) as by_memory:
        FAILING[slot](device, stream, memory, view, 4)

    view.release()  # BufferError, were its bytes in use

    assert [by_plugin.tb, by_size.tb, by_memory.tb].count(None) == 0
    assert not stream.may_have_work
    del by_plugin, by_size, by_memory
    gc.collect()
    assert recording.count("deallocate") == 1


# -- what copies keep --------------------------------------------------------------------------


def test_a_copy_reads_its_source_when_it_runs(host_device):
    """So a caller must not write to it before."""
    stream, go_on = host_device.create_stream(), threading.Event()
    stream.add_callback(lambda: go_on.wait(60))
    source, target = bytearray(b"former!!"), host_device.allocate(8)
    stream.memcpy_htod(target, source)
    source[:] = b"by then!"
    with pytest.raises(BufferError):
        source.extend(b"a buffer in use cannot be resized")
    go_on.set()
    stream.block_until_done()
    assert read(host_device, target) == b"by then!"
    source.extend(b"more")


class Source(bytearray):
    """A buffer that can be watched."""


def test_a_copy_that_comes_during_a_wait_keeps_its_buffer(host_device, monkeypatch):
    """Others wait for the stream, and feed it, before this wait has released what it waited for."""
    stream, go_on, size = host_device.create_stream(), threading.Event(), 17 << 20  # over a batch
    memory, sources = host_device.allocate(size), [Source(b"l" * size)]
    watched = weakref.ref(sources[0])

    def feed():
        stream.block_until_done()
        stream.add_callback(lambda: go_on.wait(20))
        stream.memcpy_htod(memory, sources.pop())

    stream.memset(memory, 0)
    step = "modular_tf.device.streams.stream:InFlight.release_through"
    call_at(monkeypatch, step, "before", feed)
    stream.block_until_done()
    gc.collect()
    assert watched() is not None
    go_on.set()
    stream.block_until_done()
    assert watched() is None
    assert read(host_device, memory) == b"l" * size


def test_a_stream_that_is_dropped_finishes_first(host_device):
    before = host_device.allocator_stats().bytes_in_use  # of arrays that other tests have left
    size = 1 << 18
    memory, out = host_device.allocate(size), bytearray(size)
    stream = host_device.create_stream()
    for _ in range(20):
        stream.memcpy_htod(memory, b"d" * size)
    stream.memcpy_dtoh(out, memory)
    memory.close()
    del stream, memory
    assert out == b"d" * size
    assert host_device.allocator_stats().bytes_in_use <= before


def test_a_stream_that_is_never_waited_for_keeps_little(recording, device):
    stream = device.create_stream()
    for _ in range(1000):
        stream.memset(device.allocate(4), 0)
    assert recording.count("deallocate") > 500


def test_what_a_stream_in_error_used_stays_until_its_end(recording, device):
    stream = device.create_stream()
    recording.say_of_events(1)
    for _ in range(300):
        stream.memset(device.allocate(4), 0)
    assert recording.count("deallocate") == 0
    stream.close()
    assert recording.count("deallocate") == 300
