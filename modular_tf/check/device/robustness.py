"""Checks of failures, of threads, of the heap, of the end, and of random sequences."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import HARD, LIBRARY, RAW, REGISTERS, ROBUST, WARNING, Suite
from modular_tf.check.device.by_slots import SlotDevice
from modular_tf.check.device.operations import OPERATIONS
from modular_tf.check.device.workspace import HostBuffer, expect_bytes, prepared
from modular_tf.check.endings import BUSY, DESTROYED, KEPT, expect_clean_end
from modular_tf.check.expectation import Deviation, Unsupported, expect, expect_equal, expect_in
from modular_tf.check.memory_watch import raise_harm_at_loading
from modular_tf.check.native.checking_allocator import checking_allocator
from modular_tf.check.outcome import Pass
from modular_tf.check.sequences import GROUP
from modular_tf.check.under_load import at_once
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.operations import Event, Stream
    from modular_tf.check.device.session import DeviceLibrary
    from modular_tf.check.device.workspace import Workspace
    from modular_tf.check.sequences import SequenceSession

errors = Suite("device", "errors", level=ROBUST, source="device.h")

_LAST_CODE = 16


class _Nowhere:
    """The host's side of a copy of no bytes."""

    address = 0
    view = memoryview(b"")


@errors.check("SE-222", "get_allocator_stats", severity=WARNING)
def work_takes_no_memory(device: Workspace) -> None:
    """Copies, streams and events leave the memory in use as it was.

    Otherwise: The figures that users plan memory by grow without reason.
    Remedy: Count device memory in allocate and deallocate only.
    """
    memory, host = device.filled(bytes(373)), device.buffer(373)
    answer = device.get_allocator_stats()
    if answer.code == Code.UNAVAILABLE:
        raise Unsupported(answer.message)
    before = prepared(answer).bytes_in_use
    for _ in range(10):
        stream = device.stream()
        prepared(device.memcpy_htod(stream, memory, host, 373))
        device.must_pass(device.marked(stream), "an event")
    after = prepared(device.get_allocator_stats()).bytes_in_use
    expect_equal(after, before, "bytes_in_use after work that allocates nothing")


@errors.check("SE-288", ways=RAW, severity=WARNING)
def success_sets_ok(device: Workspace) -> None:
    """An operation that succeeds sets its status to OK, whatever was in it.

    Otherwise: A host that uses a status again takes a success for the failure before.
    Remedy: Call TF_SetStatus(status, TF_OK, "") at the end of each function.
    Source: status.h
    """
    size, left = 496, []
    things = {
        "Memory": device.filled(bytes(size)), "source Memory": device.filled(bytes(size)),
        "Stream": device.stream(), "dependent Stream": device.stream(), "Event": device.event(),
        "Bytes": device.buffer(size), "Size": size, "Byte": 1, "Word": 1,
    }  # fmt: skip
    for slot, row in OPERATIONS.items():
        kinds = [(f"{name} {kind}", kind) for name, kind in row.parameters.items()]
        names = [own if own in things else kind for own, kind in kinds]
        if row.result == "status" and things.keys() >= set(names) and device.slots.has(slot):
            with device.slots.caller.poisoned():
                answer = device.perform(row, *(things[name] for name in names))
            if answer.code == Code.UNKNOWN:
                left.append(slot)
    expect(
        not left,
        "success leaves a status as it was",
        expected="status OK",
        found=f"UNKNOWN, as it was before, by {', '.join(left)}",
    )


@errors.check("SE-289", "memset32", ways=RAW, severity=WARNING)
def failures_say_something(device: Workspace) -> None:
    """A failure has a code from 1 to 16, and a message.

    Otherwise: Users see an empty error, or an unknown number.
    Remedy: Set one of the TF_Code numbers, and say in words what is wrong.
    Source: status.h
    """
    answer = device.memset32(device.stream(), device.memory(64), 1, 10)
    if answer.ok:
        raise Unsupported("no call that the kit knows makes this device fail")
    expect(
        1 <= answer.code <= _LAST_CODE,
        "a failure has an unknown code",
        expected=f"1 to {_LAST_CODE}",
        found=str(answer.code),
    )
    expect(answer.message.strip(), "a failure has no message", found=f"code {answer.code}")


@errors.check("SE-290", "memset32")
def a_refusal_ends_nothing(device: Workspace) -> None:
    """After an operation that was refused the stream and the device go on.

    Otherwise: One mistake of one program ends the work of all others on the device.
    Remedy: Check arguments before anything is enqueued.
    Source: TensorFlow 2.21, observed
    """
    stream, memory = device.stream(), device.filled(bytes(503))
    device.memset32(stream, memory, 1, 6)
    device.memset(stream, memory, 0xC3, 503).must_be_ok()
    device.block_host_until_done(stream).must_be_ok()
    device.must_hold(memory, b"\xc3" * 503, "a memory, after memset,")


@errors.check("SE-291", "host_callback")
def a_failure_stays_with_its_stream(device: Workspace) -> None:
    """A failure on one stream does not show on another.

    Otherwise: Programs fail for what others did.
    Remedy: Keep failures with the stream.
    """
    stream, other = device.stream(), device.stream()
    failure = (int(Code.ABORTED), "a callback of the kit that fails")
    device.call_back(stream, lambda: failure)
    device.block_host_until_done(stream)
    data, memory = device.bytes(509), device.memory(509)
    device.memcpy_htod(other, memory, device.buffer(data), 509).must_be_ok()
    device.block_host_until_done(other).must_be_ok()
    device.get_stream_status(other).must_be_ok()
    device.must_hold(memory, data, "the target of memcpy_htod on another stream")


@errors.check("SE-292", ways=RAW, severity=WARNING)
def copies_of_no_bytes_from_nowhere(device: Workspace) -> None:
    """Copies of no bytes take NULL on the host's side.

    Otherwise: Empty arrays have no address: programs with them fail or crash.
    Remedy: Return OK where the size is 0, before any pointer is looked at.
    Source: host recommendation
    """
    stream, memory, nowhere = device.stream(), device.memory(64), _Nowhere()
    device.memcpy_htod(stream, memory, nowhere, 0).must_be_ok()
    device.memcpy_dtoh(stream, nowhere, memory, 0).must_be_ok()
    device.sync_memcpy_htod(memory, nowhere, 0).must_be_ok()
    device.sync_memcpy_dtoh(nowhere, memory, 0).must_be_ok()
    device.done(stream)


threads = Suite("device", "threads", level=ROBUST, source="TensorFlow 2.21, observed")

_THREADS, _STREAMS, _STEPS = 8, 4, 30
_ROUNDS = 10
_HEAD_START_SECONDS = 0.02
"""For streams that go on without waiting as they must; those that wait lose nothing by it."""
_NUMBERS = bytes(range(1, 252))


def _in_threads(work: Callable[[int], None]) -> None:
    """Do some work in all threads at once, each with its number; what one raises is raised."""
    at_once([partial(work, number) for number in range(_THREADS)])


def _pattern(number: int, size: int) -> bytes:
    """Return bytes that are a thread's own."""
    return (_NUMBERS[number:] + _NUMBERS[:number]) * (size // len(_NUMBERS) + 1)


@threads.check("SE-293")
def threads_copy(device: Workspace) -> None:
    """8 threads copy through 4 streams each, and each gets its own bytes.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """

    def work(number: int) -> None:
        size = 5000 + number
        pairs = [(device.stream(), device.memory(size)) for _ in range(_STREAMS)]
        for turn in range(_ROUNDS):
            stream, memory = pairs[turn % _STREAMS]
            data, back = _pattern(number + turn, size)[:size], device.buffer(size)
            device.memcpy_htod(stream, memory, device.buffer(data), size).must_be_ok()
            device.memcpy_dtoh(stream, back, memory, size).must_be_ok()
            device.must_pass(device.marked(stream), "an event behind copies of a thread")
            expect_bytes(back.content(), data, "what a thread got back, while others copy,")

    _in_threads(work)


@threads.check("SE-294")
def threads_make_streams(device: Workspace) -> None:
    """Threads make, use and destroy streams at the same time.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    memory = device.filled(bytes(_THREADS))

    def work(number: int) -> None:
        part, source = memory.part(number, 1), device.buffer(bytes((number + 1,)))
        for _ in range(_ROUNDS):
            stream = device.create_stream().must_be_ok()
            copied = device.memcpy_htod(stream, part, source, 1)
            device.destroy_stream(stream)
            copied.must_be_ok()

    _in_threads(work)
    prepared(device.synchronize_all_activity())
    what = "what the streams of eight threads have copied"
    device.must_hold(memory, bytes(range(1, _THREADS + 1)), what)


@threads.check("SE-295")
def threads_use_events(device: Workspace) -> None:
    """Threads record, poll and destroy events of one stream at the same time.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    stream = device.stream()

    def work(_: int) -> None:
        for _ in range(_ROUNDS):
            event = device.create_event().must_be_ok()
            device.record_event(stream, event).must_be_ok()
            status = device.get_event_status(event).value
            allowed = (EventStatus.PENDING, EventStatus.COMPLETE)
            expect_in(status, allowed, "an event's status, while other threads record,")
            device.must_pass(event, "an event that a thread has recorded")
            device.destroy_event(event)

    _in_threads(work)


@threads.check("SE-296")
def threads_use_memory(device: Workspace) -> None:
    """Threads allocate, use and give back memory at the same time; no two get the same.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """

    def work(number: int) -> None:
        for turn in range(_ROUNDS):
            data = bytes((number * _ROUNDS + turn + 1,)) * 6000
            memory, back = device.allocate(6000).must_be_ok(), device.buffer(6000)
            copied = device.sync_memcpy_htod(memory, device.buffer(data), 6000)
            brought = device.sync_memcpy_dtoh(back, memory, 6000)
            device.deallocate(memory)
            copied.must_be_ok()
            brought.must_be_ok()
            expect_bytes(back.content(), data, "what a thread has in memory of its own")

    _in_threads(work)


class _OrderProgram:
    """Work of many threads on few streams, and what order their events demand.

    Each thread takes random steps: it has a callback called, records an event, or lets a stream
    wait for an event that some thread has recorded. What must have ended before a callback starts
    is known from three sources: what this thread enqueued on the stream before, what such callbacks
    had to wait for themselves, and the same of the stream of each event that the stream was made to
    wait for. What other threads enqueue on the same stream meanwhile demands nothing.

    Attributes:
        demanded: Of each callback, those that must have ended before it starts.
        started: When each callback started, by a number that no two moments share.
        ended: When it ended.
    """

    def __init__(self, device: Workspace, streams: list[Stream]) -> None:
        self.demanded: dict[int, frozenset[int]] = {}
        self.started: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self._device = device
        self._streams = streams
        self._recorded: list[tuple[Event, frozenset[int]]] = []
        self._numbers, self._ticks = count(), count()

    def take_steps(self, seed: int) -> None:
        """Take the steps of one thread; the streams need not get anywhere."""
        choose = random.Random(seed)  # noqa: S311  (repeatable)
        before: list[set[int]] = [set() for _ in self._streams]
        for _ in range(_STEPS):
            at = choose.randrange(_STREAMS)
            stream, step = self._streams[at], choose.choice(("call", "call", "record", "wait"))
            if step == "call":
                self._call(stream, before[at])
            elif step == "record":
                event = self._device.event()
                self._device.record_event(stream, event).must_be_ok()
                self._recorded.append((event, frozenset(before[at])))
            elif self._recorded:
                event, known = choose.choice(self._recorded[-_STREAMS:])
                self._device.wait_for_event(stream, event).must_be_ok()
                before[at] |= known

    def _call(self, stream: Stream, before: set[int]) -> None:
        number = next(self._numbers)

        def called() -> None:
            self.started[number] = next(self._ticks)
            self.ended[number] = next(self._ticks)

        self.demanded[number] = frozenset(before)
        self._device.host_callback(stream, called).must_be_ok()
        before.add(number)


@threads.check("SE-297", "host_callback", "wait_for_event")
def threads_keep_the_order_of_events(device: Workspace) -> None:
    """Threads and streams that wait for each other's events run in the order demanded.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: Keep with each event the place where it was recorded, under a lock.
    """
    streams = [device.stream() for _ in range(_STREAMS)]
    last, *others = [device.held(stream) for stream in streams]
    program = _OrderProgram(device, streams)
    seeds = [device.random.getrandbits(32) for _ in range(_THREADS)]
    at_once([partial(program.take_steps, seed) for seed in seeds])
    for gate in others:
        gate.open()
    time.sleep(_HEAD_START_SECONDS)
    last.open()
    for stream in streams:
        device.done(stream)
    lost = program.demanded.keys() - program.ended.keys()
    expect(not lost, "callbacks of eight threads were not called", found=f"{len(lost)} are missing")
    breaches = [
        (then, first)
        for then, before in program.demanded.items()
        for first in before
        if program.ended[first] > program.started[then]
    ]
    expect(
        not breaches,
        "callbacks ran before what their streams had to wait for",
        expected="the order that the events demand",
        found=f"{len(breaches)} pairs out of order, as (too early, before) {breaches[:3]}",
    )


@threads.check("SE-298", ways=RAW)
def two_devices(device: Workspace) -> None:
    """Two devices of the platform work beside each other, and do not mix their memory.

    Otherwise: Programs on one device spoil what runs on another.
    Remedy: Keep all state with the device that each function is given; use no globals.
    """
    platform, ordinal = device.slots.platform, (device.target.ordinal or 0) + 1
    devices = platform.device_count().needed()
    if ordinal >= devices:
        raise Unsupported(f"the plugin has {devices} devices here: there is no {ordinal}")
    other = SlotDevice(platform, ordinal)
    mine, stream = device.filled(b"\x11" * 521), device.stream()
    theirs, their_stream = other.allocate(521).must_be_ok(), other.create_stream().must_be_ok()
    back = device.buffer(521)
    try:
        other.sync_memcpy_htod(theirs, device.buffer(521), 521).must_be_ok()
        source = device.buffer(b"\x22" * 521)
        other.memcpy_htod(their_stream, theirs, source, 521).must_be_ok()
        source = device.buffer(b"\x33" * 521)
        device.memcpy_htod(stream, mine, source, 521).must_be_ok()
        other.block_host_until_done(their_stream).must_be_ok()
        other.sync_memcpy_dtoh(back, theirs, 521).must_be_ok()
    finally:
        other.destroy_stream(their_stream)
        other.deallocate(theirs)
        other.created.destroy()
    device.done(stream)
    expect_bytes(back.content(), b"\x22" * 521, "memory of the other device")
    device.must_hold(mine, b"\x33" * 521, "memory of this device")


@threads.check("SE-299")
def a_process_ends_with_work_outstanding(device: Workspace) -> None:
    """A process may end while work is outstanding.

    Otherwise: TensorFlow destroys nothing at the end: programs crash after their last line.
    Remedy: Let destructors of the library wait for threads, or leave what they use alive.

    A process of its own destroys nothing, as TensorFlow does.
    """
    expect_clean_end(device.target, BUSY)


heap = Suite("device", "heap", level=ROBUST)

_ODD_SIZES = (1, 7, 9, 31, 33, 127, 129, 7777)
"""In bytes: where what is kept beside memory is often too short."""


@heap.check("SE-329")
def keeps_to_its_heap(device: Workspace) -> None:
    """A plugin writes only into heap blocks of its own, and frees each once.

    Otherwise: The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.
    Remedy: Run the plugin with AddressSanitizer, and look at the calls before the one that is
    named.
    Source: the C language

    What was done to the heap is looked at after each check.
    """
    if checking_allocator() is None:
        raise Unsupported("the heap can be watched with the checking allocator only")
    raise_harm_at_loading("SE-329")
    for size in _ODD_SIZES:
        with suppress(Unsupported):
            memory = device.filled(device.bytes(size))
            device.content(memory)
            device.destroy(memory)
        with suppress(Unsupported):
            device.destroy(device.host_block(size))
        with suppress(Unsupported):
            stream, memory = device.stream(), device.memory(size)
            event = device.marked(stream)
            device.memcpy_htod(stream, memory, device.buffer(size), size)
            device.done(stream)
            for thing in (memory, event, stream):
                device.destroy(thing)


lifetime = Suite("device", "lifetime", level=ROBUST, ways=LIBRARY, source="device.h")

_CONTENT = bytes(range(256)) * 16
_TWO = 2


@lifetime.check("SE-180")
def devices_end_alone(plugin: DeviceLibrary) -> None:
    """Destroying a device leaves the other devices of the platform working.

    Otherwise: One device that is closed takes the work on all others down.
    Remedy: Keep what devices share until destroy_platform.
    """
    if plugin.count < _TWO:
        raise Unsupported("the plugin has no second device here")
    size, back = len(_CONTENT), HostBuffer(len(_CONTENT))
    with plugin.device(0) as first:
        memory = first.allocate(size).must_be_ok()
        first.sync_memcpy_htod(memory, HostBuffer(_CONTENT), size).must_be_ok()
        with plugin.device(1) as second:
            second.deallocate(second.allocate(size).must_be_ok())
        first.sync_memcpy_dtoh(back, memory, size).must_be_ok()
        what = "the memory of device 0, after device 1 was destroyed,"
        expect_bytes(back.content(), _CONTENT, what)
        first.deallocate(memory)


@lifetime.check("SE-182")
def process_ends_tidily(plugin: DeviceLibrary) -> None:
    """A process that has destroyed everything ends with its own exit status.

    Otherwise: Each run seems to have failed: scripts and schedulers repeat it.
    Remedy: Join threads in destroy_device; let destructors of the library do nothing twice.
    """
    expect_clean_end(replace(plugin.target, reached=Pass.RAW, ordinal=0), DESTROYED)


@lifetime.check("SE-183")
def process_ends_untidily(plugin: DeviceLibrary) -> None:
    """A process that has destroyed nothing ends with its own exit status.

    Otherwise: TensorFlow destroys nothing at its end, so each run of it seems to have failed.
    Remedy: Let destructors of the library accept devices and streams that still exist.
    Source: TensorFlow 2.21, observed
    """
    expect_clean_end(replace(plugin.target, reached=Pass.RAW, ordinal=0), KEPT)


@lifetime.check("SE-032", level=REGISTERS)
def destroying_returns(plugin: DeviceLibrary) -> None:
    """A device, if there is one, and then the platform; nothing can be done with it after that."""
    platform, failures = plugin.platform, []
    if plugin.count:
        with_device = platform.create_device(0)
        if with_device.ok:
            failures += [one.message for one in with_device.value.destroy()]
    failures += platform.take_down()
    if failures:
        raise Deviation("; ".join(failures))


sequences = Suite("device", GROUP, level=HARD, seconds=600)


@sequences.check("SE-300")
def keeps_to_the_model(ground: SequenceSession) -> None:
    """Whatever work is enqueued, memory holds what some order that is allowed leaves there.

    Otherwise: Programs compute with data that is not there yet, or with another's.
    Remedy: Replay the sequence that is named, in a debugger if need be; it is as short as it gets.
    Source: the other rules of devices, taken together
    """
    ground.search()
