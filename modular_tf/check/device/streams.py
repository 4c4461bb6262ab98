"""Checks of streams: their order, waiting for them, dependencies between them.

What holds a stream back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.event_progress import (
    expect_held,
    expect_passed,
    expect_passed_meanwhile,
    gets_passed,
    marked,
)
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import expect_prompt, expect_waits, held
from modular_tf.check.expectation import expect
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream

CHECKS = CheckList("device", "streams")

_HOLDS = ("host_callback", "create_event", "record_event", "get_event_status")
_DEPENDS = ("create_stream_dependency", *_HOLDS)
_IN_TURN = 200
_AT_ONCE = 64
_LONG = 1000


def _depend(ground: DeviceGround, dependent: Stream, other: Stream) -> None:
    answer = ground.subject.create_stream_dependency(dependent, other)
    expect_ok(answer, "create_stream_dependency")


@CHECKS.check("SE-235", Level.WORKS, needs=("get_stream_status",))
def a_new_stream_is_well(ground: DeviceGround) -> None:
    """Asked before it has done anything."""
    expect_ok(
        ground.subject.get_stream_status(ground.stream()), "get_stream_status of a new stream"
    )


@CHECKS.check("SE-236", Level.WORKS, needs=("block_host_until_done",))
def waiting_for_nothing(ground: DeviceGround) -> None:
    """Tried twice on one stream."""
    stream = ground.stream()
    for time in ("first", "second"):
        answer = ground.subject.block_host_until_done(stream)
        expect_ok(answer, f"block_host_until_done of a stream without work, the {time} time,")


@CHECKS.check("SE-237", Level.WORKS, needs=("get_stream_status", *_HOLDS))
def a_status_does_not_wait(ground: DeviceGround) -> None:
    """Asked while the stream is held back."""
    stream = ground.stream()
    gate = held(ground, stream)
    call = lambda: ground.subject.get_stream_status(stream)  # noqa: E731
    expect_ok(expect_prompt(gate, call, "get_stream_status"), "get_stream_status of a busy stream")


@CHECKS.check("SE-238", Level.ROBUST)
def streams_in_turn(ground: DeviceGround) -> None:
    """Each is destroyed before the next is made."""
    for number in range(_IN_TURN):
        answer = ground.subject.create_stream()
        expect_ok(answer, f"create_stream, after {number} were made and destroyed,")
        ground.subject.destroy_stream(answer.value)


@CHECKS.check("SE-239", Level.ROBUST)
def streams_at_once(ground: DeviceGround) -> None:
    """Tried with work on each stream."""
    memory = ground.filled(bytes(_AT_ONCE))
    for number in range(_AT_ONCE):
        answer = ground.subject.create_stream()
        expect_ok(answer, f"create_stream, while there are {number},")
        ground.adopt("stream", answer.value)
        part, source = memory.part(number, 1), ground.buffer(bytes((number + 1,)))
        expect_ok(ground.subject.memcpy_htod(answer.value, part, source, 1), "memcpy_htod")
    prepared(ground.subject.synchronize_all_activity(), "synchronize_all_activity")
    expected = bytes(range(1, _AT_ONCE + 1))
    expect_bytes(ground.content(memory), expected, f"what {_AT_ONCE} streams have copied")


@CHECKS.check("SE-240", Level.ROBUST, needs=_HOLDS)
def streams_are_independent(ground: DeviceGround) -> None:
    """One is held back, the other gets its work done."""
    gate, other = held(ground, ground.stream()), ground.stream()
    enqueue_work(ground, other, 353)
    passed = gets_passed(ground, marked(ground, other))
    gate.open()
    expect(passed, "a stream waits while another one is blocked", expected="it continues")


@CHECKS.check("SE-241", Level.WORKS, needs=("host_callback",))
def copies_in_order(ground: DeviceGround) -> None:
    """A copy into a memory, one out of it, and another one into it."""
    stream, subject = ground.stream(), ground.subject
    first, last = ground.bytes(357), ground.bytes(357)
    memory, taken = ground.filled(bytes(357)), ground.buffer(357)
    gate = ground.gate(stream)
    prepared(subject.memcpy_htod(stream, memory, ground.buffer(first), 357), "memcpy_htod")
    prepared(subject.memcpy_dtoh(stream, taken, memory, 357), "memcpy_dtoh")
    prepared(subject.memcpy_htod(stream, memory, ground.buffer(last), 357), "memcpy_htod")
    gate.open()
    ground.done(stream)
    expect_bytes(taken.content(), first, "what was read between two writes")
    expect_bytes(ground.content(memory), last, "what was written last")


@CHECKS.check("SE-242", Level.ROBUST, needs=("host_callback",))
def a_long_queue(ground: DeviceGround) -> None:
    """All is enqueued before anything is done."""
    stream, memory = ground.stream(), ground.filled(bytes(_LONG))
    expected = bytes(number % 250 + 1 for number in range(_LONG))
    gate = ground.gate(stream)
    for number in range(_LONG):
        part, source = memory.part(number, 1), ground.buffer(expected[number : number + 1])
        answer = ground.subject.memcpy_htod(stream, part, source, 1)
        expect_ok(answer, f"memcpy_htod, with {number} before it on the stream,")
    gate.open()
    ground.done(stream)
    expect_bytes(ground.content(memory), expected, f"what {_LONG} copies have copied")


@CHECKS.check("SE-243", Level.WORKS, needs=("host_callback",))
def the_host_waits_for_a_stream(ground: DeviceGround) -> None:
    """It is still waiting when the stream is let go."""
    stream = ground.stream()
    gate = held(ground, stream)
    enqueue_work(ground, stream, 359)
    call = lambda: ground.subject.block_host_until_done(stream)  # noqa: E731
    expect_ok(expect_waits(gate, call, "block_host_until_done"), "block_host_until_done")


@CHECKS.check("SE-244", Level.WORKS, needs=_DEPENDS)
def a_stream_depends_on_another(ground: DeviceGround) -> None:
    """Its own event is not passed, and it sees what the other has written."""
    dependent, other, data = ground.stream(), ground.stream(), ground.bytes(361)
    source, target = ground.filled(bytes(361)), ground.filled(bytes(361))
    gate = held(ground, other)
    enqueue_work(ground, other, 361)
    prepared(ground.subject.memcpy_htod(other, source, ground.buffer(data), 361), "memcpy_htod")
    _depend(ground, dependent, other)
    prepared(ground.subject.memcpy_dtod(dependent, target, source, 361), "memcpy_dtod")
    expect_held(ground, marked(ground, dependent), "a stream that depends on another")
    gate.open()
    ground.done(dependent)
    expect_bytes(ground.content(target), data, "what was copied behind a dependency")


@CHECKS.check("SE-245", Level.WORKS, needs=_DEPENDS)
def a_dependency_does_not_block(ground: DeviceGround) -> None:
    """It is made while the other stream is held back."""
    dependent, other = ground.stream(), ground.stream()
    gate = held(ground, other)
    enqueue_work(ground, other, 363)
    call = lambda: ground.subject.create_stream_dependency(dependent, other)  # noqa: E731
    expect_ok(expect_prompt(gate, call, "create_stream_dependency"), "create_stream_dependency")


@CHECKS.check("SE-246", Level.ROBUST, needs=("create_stream_dependency",))
def a_stream_depends_on_itself(ground: DeviceGround) -> None:
    """Tried with work before and after the dependency."""
    stream = ground.stream()
    enqueue_work(ground, stream, 367)
    _depend(ground, stream, stream)
    enqueue_work(ground, stream, 368)
    expect_passed(ground, marked(ground, stream), "a stream that depends on itself")


@CHECKS.check("SE-247", Level.ROBUST, needs=_DEPENDS)
def a_chain_of_streams(ground: DeviceGround) -> None:
    """Eight, of which the first is held back."""
    streams = [ground.stream() for _ in range(8)]
    gate = held(ground, streams[0])
    for other, dependent in pairwise(streams):
        _depend(ground, dependent, other)
    last = marked(ground, streams[-1])
    expect_held(ground, last, "the last of eight streams that depend on each other in a row")
    gate.open()
    expect_passed(ground, last, "the last of eight streams that depend on each other in a row")


@CHECKS.check("SE-248", Level.ROBUST, needs=("create_stream_dependency",))
def two_streams_depend_on_each_other(ground: DeviceGround) -> None:
    """Each on what the other held before."""
    one, two = ground.stream(), ground.stream()
    enqueue_work(ground, one, 371)
    enqueue_work(ground, two, 372)
    _depend(ground, one, two)
    _depend(ground, two, one)
    for stream in (one, two):
        expect_passed(ground, marked(ground, stream), "a stream of two that depend on each other")


@CHECKS.check("SE-249", Level.ROBUST, needs=_DEPENDS)
def a_dependency_is_on_earlier_work(ground: DeviceGround) -> None:
    """The other stream is held back behind it."""
    dependent, other = ground.stream(), ground.stream()
    enqueue_work(ground, other, 373)
    _depend(ground, dependent, other)
    gate = held(ground, other)
    enqueue_work(ground, dependent, 374)
    what = "a stream that depends on another, which is held back later on,"
    expect_passed_meanwhile(ground, marked(ground, dependent), what)
    gate.open()


@CHECKS.check("SE-250", Level.ROBUST)
def a_stream_is_destroyed_with_work(ground: DeviceGround) -> None:
    """Tried with work on the stream, which must be done, and the device must work."""
    memory, stream, other = ground.filled(bytes(37900)), ground.stream(), ground.stream()
    for number in range(100):
        part, source = memory.part(number * 379, 379), ground.buffer(b"\x5a" * 379)
        prepared(ground.subject.memcpy_htod(stream, part, source, 379), "memcpy_htod")
    ground.destroy(stream)
    enqueue_work(ground, other, 380)
    prepared(ground.subject.synchronize_all_activity(), "synchronize_all_activity")
    expect_bytes(ground.content(memory), b"\x5a" * 37900, "what a destroyed stream has copied")


@CHECKS.check("SE-251", Level.WORKS, needs=("host_callback",))
def the_host_waits_for_all_streams(ground: DeviceGround) -> None:
    """Three, of which one is held back."""
    streams = [ground.stream() for _ in range(3)]
    gate = held(ground, streams[1])
    for stream in streams:
        enqueue_work(ground, stream, 383)
    call = ground.subject.synchronize_all_activity
    expect_ok(expect_waits(gate, call, "synchronize_all_activity"), "synchronize_all_activity")


@CHECKS.check("SE-252", Level.WORKS)
def waiting_for_no_stream(ground: DeviceGround) -> None:
    """There is none, or none with work."""
    answer = ground.subject.synchronize_all_activity()
    expect_ok(answer, "synchronize_all_activity without any work")
