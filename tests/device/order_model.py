"""Programs for many threads and streams, and what order their dependencies demand.

A program is one list of steps, each of a thread; a thread takes its own in the list's order, and
meets other threads only where it uses an event that one of them has recorded. What the model knows
is two relations, kept as sets of steps:

- `issued`: what was enqueued before a step was, whatever the scheduler does. That is the thread's
  earlier steps, and with a used event all that its recorder knew.
- `done`: what a stream, or the host that waits, has finished before it gets to a step. That is
  what was issued before on the same stream; with a waited-for event or stream its work as well;
  and all that was done before any of these.

Steps that neither relation orders may be seen in any order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import Enum

THREADS = 8
STREAMS = 4


class Kind(Enum):
    """What a step does."""

    CALLBACK = "a host callback"
    WRITE = "copy from the host"
    FILL = "memset"
    COPY = "copy on the device"
    READ = "copy to the host"
    RECORD = "record an event"
    WAIT_EVENT = "let the stream wait for an event"
    DEPEND = "let the stream wait for another"
    HOST_WAIT = "poll an event"
    HOST_BLOCK = "block for an event"
    HOST_STREAM = "wait for a stream"


SEEN = frozenset({Kind.CALLBACK, Kind.WRITE, Kind.FILL, Kind.COPY, Kind.READ})
"""The steps that leave a trace."""
_ON_HOST = frozenset({Kind.HOST_WAIT, Kind.HOST_BLOCK, Kind.HOST_STREAM})
_USES_EVENT = frozenset({Kind.WAIT_EVENT, Kind.HOST_WAIT, Kind.HOST_BLOCK})


@dataclass
class Step:
    """One step.

    Attributes:
        number: Its place in the program.
        thread: Who takes it.
        kind: What it does.
        stream: On which stream; for HOST_STREAM the one that is waited for.
        other: The stream that DEPEND waits for.
        of: The step whose event is used, or whose bytes COPY takes.
        issued: Steps that are enqueued before it.
        done: Steps that are finished before it runs.
    """

    number: int
    thread: int
    kind: Kind
    stream: int
    other: int
    of: int | None
    issued: set[int] = field(default_factory=set, repr=False)
    done: set[int] = field(default_factory=set, repr=False)


Program = list[Step]


def _resolved(number, draw, before):
    """Return a step whose reference exists; one without a choice records or writes instead."""
    thread, kind, stream, other, choice = draw
    wanted = {**dict.fromkeys(_USES_EVENT, Kind.RECORD), Kind.COPY: Kind.WRITE}.get(kind)
    if wanted is None:
        return Step(number, thread, kind, stream, other, None)
    choices = [step.number for step in before if step.kind is wanted]
    if not choices:
        return Step(number, thread, wanted, stream, other, None)
    return Step(number, thread, kind, stream, other, choices[-1 - choice % len(choices)])


def _relate(step, program):
    """Find what comes before a step, all earlier ones being known."""
    mine = [earlier for earlier in program[: step.number] if earlier.thread == step.thread]
    known = [mine[-1].number] if mine else []
    known += [] if step.of is None or step.kind is Kind.COPY else [step.of]
    for number in known:
        step.issued |= {number, *program[number].issued}
    for number in step.issued:
        earlier = program[number]
        if earlier.kind in _ON_HOST:
            step.done |= earlier.done
        elif _is_waited_for(step, earlier):
            step.done |= {number, *earlier.done}


def _is_waited_for(step, earlier):
    if step.kind in {Kind.HOST_WAIT, Kind.HOST_BLOCK}:
        return earlier.number == step.of
    if step.kind is Kind.DEPEND and earlier.stream == step.other:
        return True
    return earlier.stream == step.stream or (
        step.kind is Kind.WAIT_EVENT and earlier.number == step.of
    )


def program_of(draws):
    """Return the program of some choices: (thread, kind, stream, other stream, reference)."""
    program = []
    for number, draw in enumerate(draws):
        program.append(_resolved(number, draw, program))
        _relate(program[-1], program)
    return program


def random_program(seed, size):
    """Return a program; the same for the same seed.

    A thread mostly stays on its stream, and uses events that are new: so orders come about.
    """
    choose = random.Random(seed)
    at = [choose.randrange(STREAMS) for _ in range(THREADS)]
    kinds = [*sorted(SEEN, key=str), *Kind]
    draws = []
    for _ in range(size):
        thread = choose.randrange(THREADS)
        if not choose.randrange(4):
            at[thread] = choose.randrange(STREAMS)
        other = choose.randrange(STREAMS)
        draws.append((thread, choose.choice(kinds), at[thread], other, choose.randrange(4)))
    return program_of(draws)


@dataclass
class Trace:
    """What was seen of a program's run.

    Attributes:
        started: When each callback began, in ticks that no two share.
        ended: When each callback ended.
        rows: One row of bytes per step, from the device after all was done. A write leaves a 1 at
            its own number, and one at each callback's that had run before it took the bytes; a
            fill leaves the former; a copy on the device leaves what the row of `of` held.
        snapshots: What each read saw of the rows.
        reads: Which reads each callback saw done.
    """

    started: dict[int, int]
    ended: dict[int, int]
    rows: list[bytes]
    snapshots: dict[int, list[bytes]]
    reads: dict[int, set[int]]

    def saw(self, first, then):
        """Tell whether `then` saw that `first` was over; None where that leaves no trace."""
        writes = {Kind.WRITE, Kind.FILL}
        match first.kind, then.kind:
            case Kind.CALLBACK, Kind.CALLBACK:
                return self.ended[first.number] < self.started[then.number]
            case Kind.CALLBACK, Kind.WRITE:
                return self.rows[then.number][first.number] == 1
            case Kind.READ, Kind.CALLBACK:
                return first.number in self.reads[then.number]
            case kind, Kind.READ if kind in writes:
                return self.snapshots[then.number][first.number][first.number] == 1
            case Kind.WRITE, Kind.COPY if then.of == first.number:
                return self.rows[then.number][first.number] == 1
        return None


def violations(program, trace):
    """Return where a trace breaks the order that the program demands."""
    seen = [step for step in program if step.kind in SEEN]
    wrong = {}
    for first in seen:
        for then in seen:
            if first.number in then.done and trace.saw(first, then) is False:
                wrong[first.number, then.number] = f"{then} did not wait for {first}"
            elif then.number in first.done and trace.saw(first, then) is True:
                wrong[then.number, first.number] = f"{first} did not wait for {then}"
    return list(wrong.values())


def demands(program):
    """Return how many orders between two streams a trace of the program is judged by."""
    seen = [step for step in program if step.kind in SEEN]
    return sum(
        program[number].kind in SEEN and program[number].stream != step.stream
        for step in seen
        for number in step.done
    )
