"""Copies and fills: the order of calls, the bytes, the bounds, what stays alive."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from array import array

import pytest

from modular_tf.device.executor import DeviceContext
from modular_tf.errors import ClosedError, InternalError, InvalidArgumentError, ModularTFError
from modular_tf.native.ffi import lib

SYNC = "synchronize_all_activity"


def read(device, memory):
    out = bytearray(memory.size)
    device.memcpy_dtoh(out, memory)
    return bytes(out)


# -- the device context: device-abi B5 ---------------------------------------------------------


def test_streams_are_created_lazily_and_in_order(recording, device):
    context = DeviceContext(device.executor, 4)
    assert recording.count("create_stream") == 0
    streams = context.streams
    assert recording.count("create_stream") == len(streams) == 7
    assert context.compute is streams[0]
    assert context.host_to_device is streams[1]
    assert context.device_to_host is streams[2]
    assert context.device_to_device == streams[3:]


@pytest.mark.parametrize("number", [0, 5])
def test_one_to_four_streams_between_devices(device, number):
    with pytest.raises(InvalidArgumentError, match="expected 1 to 4"):
        DeviceContext(device.executor, number)


def copied(recording, device, copy):
    """Return the calls of one copy, streams s1 to s4 being compute, h2d, d2h, d2d."""
    memory = device.allocate(16)
    assert len(device.context.streams) == 4
    recording.clear()
    event = copy(device.context, memory)
    calls = recording.calls
    if event is not None:
        event.wait()
    return calls


def test_the_sequence_to_the_device(recording, device):
    calls = copied(recording, device, lambda to, memory: to.copy_host_to_device(memory, b"x" * 16))
    assert calls == [
        "create_stream_dependency s2 s1",
        "memcpy_htod s2 16",
        "create_event",
        "record_event s2 e1",
    ]


def test_the_sequence_to_the_host(recording, device):
    calls = copied(
        recording, device, lambda to, memory: to.copy_device_to_host(bytearray(16), memory)
    )
    assert calls == [
        SYNC,
        "create_stream_dependency s3 s1",
        "memcpy_dtoh s3 16",
        "create_event",
        "record_event s3 e1",
    ]


def test_the_sequence_on_the_device(recording, device):
    target = device.allocate(16)
    calls = copied(recording, device, lambda to, memory: to.copy_on_device(target, memory))
    assert calls == ["memcpy_dtod s1 16"]


def test_without_a_byte_there_is_an_event_and_no_copy(recording, device):
    calls = copied(recording, device, lambda to, memory: to.copy_host_to_device(memory, b""))
    assert calls == ["create_stream_dependency s2 s1", "create_event", "record_event s2 e1"]


def test_the_sequence_between_devices_of_one_plugin(recording):
    with recording.devices() as [first, second]:
        source, target = first.allocate(16), second.allocate(16)
        assert [len(first.context.streams), len(second.context.streams)] == [4, 4]
        recording.clear()
        event = first.context.copy_to_device(second.context, target, source)
        assert recording.calls == [
            SYNC,
            "create_stream_dependency s4 s1",
            "create_stream_dependency s4 s5",
            "memcpy_dtod s4 16",
            "create_event",
            "record_event s4 e1",
        ]
        event.wait()


def test_streams_between_devices_take_turns(recording):
    with recording.devices() as [first, second]:
        context = DeviceContext(first.executor, 2)
        source, target = first.allocate(16), second.allocate(16)
        for _ in range(3):
            context.copy_to_device(second.context, target, source)
        copies = [call for call in recording.calls if call.startswith("memcpy_dtod")]
        assert copies == ["memcpy_dtod s4 16", "memcpy_dtod s5 16", "memcpy_dtod s4 16"]


def test_between_plugins_bytes_go_through_the_host(device, host_device):
    source, target = host_device.allocate(4), device.allocate(4)
    host_device.memcpy_htod(source, b"abcd")
    host_device.context.copy_to_device(device.context, target, source).wait()
    assert read(device, target) == b"abcd"


@pytest.mark.parametrize("missing", [-1, 0, 1])
def test_long_copies_between_plugins_go_in_pieces(device, host_device, missing, monkeypatch):
    monkeypatch.setattr("modular_tf.device.executor._PIECE", 1000)
    size = 5000 - missing
    data = random.Random(size).randbytes(size)
    source, target = device.allocate(size), host_device.allocate(size)
    device.memcpy_htod(source, data)
    device.context.copy_to_device(host_device.context, target, source).wait()
    assert read(host_device, target) == data
    host_device.context.copy_to_device(device.context, source, target, 2500).wait()
    assert read(device, source) == data


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
    with pytest.raises(InvalidArgumentError, match="two plugins"):
        stream.memcpy_htod(memory, b"abcd")
    with pytest.raises(InvalidArgumentError, match="two plugins"):
        stream.wait_for(device.create_stream())
    with pytest.raises(InvalidArgumentError, match="two plugins"):
        stream.wait_event(device.create_stream().record_event())
    with pytest.raises(InvalidArgumentError, match="two plugins"):
        host_device.memcpy_dtoh(bytearray(4), memory)


# -- bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4096, 64 << 20], ids=str)
def test_a_round_trip_keeps_every_byte(host_device, size):
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    memory, out = host_device.allocate(size), bytearray(size)
    with host_device.create_stream() as stream:
        stream.memcpy_htod(memory, data)
        stream.memcpy_dtoh(out, memory)
        stream.block_until_done()
    assert out == data


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
        device.memcpy_dtod(three, two, 3, target_offset=1, source_offset=1)
        assert read(device, three)[1:] == b"bcd"
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


@pytest.mark.parametrize(("n_bytes", "offset"), [(5, 0), (4, 1), (1, 4), (0, -1), (-1, 0), (4, -1)])
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
        if n_bytes == 0:
            continue  # nothing is touched: judged below
        with pytest.raises(InvalidArgumentError):
            copy()
    assert recording.calls == []


def test_copies_stay_inside_the_host_buffer(device):
    memory = device.allocate(8)
    with pytest.raises(InvalidArgumentError, match="host buffer of 4"):
        device.memcpy_htod(memory, b"abcd", 5)
    with pytest.raises(InvalidArgumentError, match="host buffer"):
        device.memcpy_dtoh(b"read-only", memory)
    with pytest.raises(InvalidArgumentError, match="host buffer"):
        device.memcpy_htod(memory, memoryview(b"abcdefgh")[::2])
    with pytest.raises(InvalidArgumentError, match="host buffer"):
        device.memcpy_htod(memory, 7)
    with pytest.raises(TypeError):
        device.create_stream().memcpy_htod(b"target", b"source")


@pytest.mark.parametrize("value", [-1, 256])
def test_a_byte_is_a_byte(device, value):
    stream, memory = device.create_stream(), device.allocate(4)
    with pytest.raises(InvalidArgumentError, match="no byte"):
        stream.memset(memory, value)
    with pytest.raises(InvalidArgumentError, match="multiple"):
        stream.memset32(memory, 1, 3)
    with pytest.raises(InvalidArgumentError, match="32-bit"):
        stream.memset32(memory, 1 << 32)


# -- failures ----------------------------------------------------------------------------------

COPIES = {
    "memcpy_htod": lambda d, s, m: s.memcpy_htod(m, b"abcd"),
    "memcpy_dtoh": lambda d, s, m: s.memcpy_dtoh(bytearray(4), m),
    "memcpy_dtod": lambda d, s, m: s.memcpy_dtod(m, m),
    "sync_memcpy_htod": lambda d, s, m: d.memcpy_htod(m, b"abcd"),
    "sync_memcpy_dtoh": lambda d, s, m: d.memcpy_dtoh(bytearray(4), m),
    "sync_memcpy_dtod": lambda d, s, m: d.memcpy_dtod(m, m),
    "mem_zero": lambda d, s, m: s.mem_zero(m),
    "memset": lambda d, s, m: s.memset(m, 1),
    "memset32": lambda d, s, m: s.memset32(m, 1),
}


@pytest.mark.parametrize("code", [5, 15, -1])
@pytest.mark.parametrize("slot", COPIES)
def test_a_failing_copy_is_typed_and_the_device_goes_on(recording, device, slot, code):
    stream, memory = device.create_stream(), device.allocate(4)
    recording.fail(slot, code)
    with pytest.raises(ModularTFError, match=f"RECORDING:0: {slot}") as caught:
        COPIES[slot](device, stream, memory)
    assert (caught.value.operation, caught.value.plugin) == (slot, "recording")
    assert caught.value.code == (13 if code == -1 else code)
    recording.heal()
    COPIES[slot](device, stream, memory)
    device.memcpy_htod(memory, b"good")
    assert read(device, memory) == b"good"


HOST_COPIES = {
    "memcpy_htod": lambda d, s, m, view, size: s.memcpy_htod(m, view, size),
    "memcpy_dtoh": lambda d, s, m, view, size: s.memcpy_dtoh(view, m, size),
    "sync_memcpy_htod": lambda d, s, m, view, size: d.memcpy_htod(m, view, size),
    "sync_memcpy_dtoh": lambda d, s, m, view, size: d.memcpy_dtoh(view, m, size),
}


@pytest.mark.parametrize("slot", HOST_COPIES)
def test_the_error_of_a_copy_keeps_none_of_its_bytes(recording, device, slot):
    """Python 3.11.7 crashes when its collector finds such a traceback (gh-77894)."""
    stream, memory, view = device.create_stream(), device.allocate(4), memoryview(bytearray(4))
    recording.fail(slot, 5)
    with pytest.raises(ModularTFError) as by_plugin:
        HOST_COPIES[slot](device, stream, memory, view, 4)
    with pytest.raises(InvalidArgumentError) as by_size:
        HOST_COPIES[slot](device, stream, memory, view, 5)
    memory.close()
    with pytest.raises(ClosedError) as by_memory:
        HOST_COPIES[slot](device, stream, memory, view, 4)

    view.release()  # BufferError, were its bytes in use

    assert [by_plugin.tb, by_size.tb, by_memory.tb].count(None) == 0


@pytest.mark.parametrize("slot", [slot for slot in COPIES if not slot.startswith("sync")])
def test_refused_copies_leave_nothing_behind(recording, device, slot):
    stream, memory = device.create_stream(), device.allocate(4)
    stream.memset(memory, 1)
    recording.fail(slot, 5)
    for _ in range(3):
        with pytest.raises(ModularTFError):
            COPIES[slot](device, stream, memory)
    memory.close()
    for _ in range(3):
        with pytest.raises(ClosedError):
            COPIES[slot](device, stream, memory)

    assert len(stream._in_flight) == 1


# -- what copies keep --------------------------------------------------------------------------


class Source(bytearray):
    """A buffer that can be watched."""


def test_a_copy_keeps_its_buffers_until_it_is_done(host_device):
    stream, go_on = host_device.create_stream(), threading.Event()
    stream.add_callback(go_on.wait)
    memory, source = host_device.allocate(1 << 20), Source(b"s" * (1 << 20))
    out = bytearray(1 << 20)
    watched = weakref.ref(source)
    stream.memcpy_htod(memory, source)
    stream.memcpy_dtoh(out, memory)
    memory.close()
    del source, memory
    gc.collect()
    assert watched() is not None
    assert host_device.allocator_stats().bytes_in_use == 1 << 20
    go_on.set()
    stream.block_until_done()
    assert watched() is None
    assert host_device.allocator_stats().bytes_in_use == 0
    assert out == b"s" * (1 << 20)


def test_a_copy_that_comes_during_a_wait_keeps_its_buffer(host_device, monkeypatch):
    """Another thread feeds the stream between the end of the plugin's wait and the clean-up."""
    stream, memory, go_on = host_device.create_stream(), host_device.allocate(8), threading.Event()
    watched = []

    class OtherThread:
        def __getattr__(self, name):
            return getattr(lib, name)

        def mtf_stream_block_until_done(self, native):
            error = lib.mtf_stream_block_until_done(native)
            source = Source(b"too late")
            watched.append(weakref.ref(source))
            stream.add_callback(go_on.wait)
            stream.memcpy_htod(memory, source)
            return error

    with monkeypatch.context() as patched:
        patched.setattr("modular_tf.device.streams.stream.lib", OtherThread())
        stream.block_until_done()
    gc.collect()
    assert watched[0]() is not None
    go_on.set()
    stream.block_until_done()
    assert watched[0]() is None
    assert read(host_device, memory) == b"too late"


def test_a_stream_that_is_dropped_finishes_first(host_device):
    before = host_device.allocator_stats().bytes_in_use  # of arrays that other tests have left
    memory, out = host_device.allocate(1 << 20), bytearray(1 << 20)
    stream = host_device.create_stream()
    for _ in range(20):
        stream.memcpy_htod(memory, b"d" * (1 << 20))
    stream.memcpy_dtoh(out, memory)
    memory.close()
    del stream, memory
    assert out == b"d" * (1 << 20)
    assert host_device.allocator_stats().bytes_in_use <= before


def test_a_stream_that_is_never_waited_for_keeps_little(device):
    stream, memory = device.create_stream(), device.allocate(4)
    for _ in range(10_000):
        stream.memcpy_htod(memory, b"abcd")
    assert len(stream._in_flight) < 500


def test_what_a_stream_in_error_used_stays_until_its_end(recording, device):
    stream, memory = device.create_stream(), device.allocate(4)
    recording.say_of_events(1)
    for _ in range(300):
        stream.memcpy_htod(memory, b"abcd")
    assert len(stream._in_flight) == 300
    memory.close()
    assert recording.count("deallocate") == 0
    stream.close()
    assert recording.calls[-2:] == ["destroy_stream s1", "deallocate 4 77"] or (
        recording.count("deallocate") == 1
    )


def test_closed_things_are_refused(device):
    stream, memory = device.create_stream(), device.allocate(4)
    memory.close()
    with pytest.raises(ClosedError, match="DeviceMemory"):
        stream.memcpy_htod(memory, b"abcd")
    with pytest.raises(ClosedError, match="DeviceMemory"):
        device.memcpy_dtoh(bytearray(4), memory)
    stream.close()
    stream.close()
    for use in (
        lambda: stream.memcpy_htod(device.allocate(4), b"abcd"),
        lambda: stream.memcpy_dtod(device.allocate(4), device.allocate(4)),
        lambda: stream.mem_zero(device.allocate(4)),
        stream.record_event,
        stream.block_until_done,
        lambda: stream.status,
        lambda: stream.add_callback(print),
        lambda: device.create_stream().wait_for(stream),
    ):
        with pytest.raises(ClosedError, match="Stream"):
            use()


def test_an_unknown_event_is_an_error_of_the_copy(recording, device):
    event = device.context.copy_host_to_device(device.allocate(4), b"abcd")
    recording.say_of_events(0)
    with pytest.raises(InternalError, match="UNKNOWN"):
        event.wait()
