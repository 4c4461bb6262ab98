"""Random sequences of operations, tried on a plugin and on a model of what it should be.

A sequence is a program: data that is written down, handed to another process, made smaller, and
replayed. The steps of each kind of plugin are in `filesystem/model.py` and `device/model.py`.
"""

from __future__ import annotations

import base64
import json
import math
import os
import shlex
import time
import traceback
import zlib
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias, cast

from modular_tf.check.call_log import CallLog
from modular_tf.check.calls import listen
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.outcome import Pass  # noqa: TC001  (for the codec)
from modular_tf.check.session import Session, session_of
from modular_tf.codec import decode, encode, row
from modular_tf.errors import ConfigError, ModularTFError
from modular_tf.native.crash_report import report_crashes
from modular_tf.processes.child import REPORT, Report, become_child, dump_no_core
from modular_tf.processes.descendants import adopt_orphans
from modular_tf.processes.ending import ChildEnding, signal_in_full
from modular_tf.processes.watched_child import WatchedChild

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from modular_tf.check.check import Check
    from modular_tf.check.target import Target

GROUP = "sequences"
"""The group of the checks that try them."""

_MODULES: Mapping[str, str] = {
    "filesystem": "modular_tf.check.filesystem.model",
    "device": "modular_tf.check.device.model",
}
_SECONDS_OF_A_PROGRAM = 20.0
_SHRINK_SECONDS = 10.0
_MOST_STATEMENTS = 15
_MOST_CALLS = 40


# -- programs --------------------------------------------------------------------------------------

Step: TypeAlias = tuple[str, list[Any]]
"""An operation and its arguments, as JSON knows them: bytes are written as hexadecimal digits."""

Program: TypeAlias = tuple[Step, ...]


class Numbers(NamedTuple):
    """An argument that is a number, both bounds allowed."""

    least: int
    most: int


class Data(NamedTuple):
    """An argument that is so many bytes."""

    least: int
    most: int


class ListOf(NamedTuple):
    """An argument that is a list of others."""

    of: Argument
    most: int


Argument: TypeAlias = "Numbers | Data | ListOf | tuple[str, ...]"
"""What an argument of a step may be; of texts, one."""

StepKind: TypeAlias = tuple[tuple[str, ...], tuple[Argument, ...]]
"""Operations, of which a step has one, and their arguments."""


class Performer(Protocol):
    """A module that knows the programs of one kind of plugin."""

    STEPS: Sequence[StepKind]

    def script(self, program: Program) -> list[str]:
        """Return a program as C-like statements, one a step."""

    def perform(self, workspace: Any, program: Program) -> None:
        """Do a program to the plugin and its model; what is not offered is left out.

        The workspace is empty. Raises `Deviation` where the two differ.
        """


def performer_of(kind: str) -> Performer:
    """Return the module for a kind of plugin."""
    return cast("Performer", import_module(_MODULES[kind]))


def random_program(kinds: Sequence[StepKind], chance: random.Random, steps: int) -> Program:
    """Return a program of so many steps."""

    def drawn(argument: Argument) -> Any:
        match argument:
            case Numbers(least, most):
                return chance.randint(least, most)
            case Data(least, most):
                return chance.randbytes(chance.randint(least, most)).hex()
            case ListOf(of, most):
                return [drawn(of) for _ in range(chance.randint(0, most))]
        return chance.choice(argument)

    chosen = [chance.choice(kinds) for _ in range(steps)]
    return tuple((chance.choice(names), [*map(drawn, given)]) for names, given in chosen)


@row
class Replay(NamedTuple):
    """A program, and on what it is to be tried: what `--replay` is given."""

    check_id: str  # the check that found it
    reached: Pass  # in which way the plugin was reached
    scheme: str | None  # None for a device
    ordinal: int | None  # None for a filesystem
    program: Program

    def token(self) -> str:
        """Return it as one word for a command line."""
        packed = zlib.compress(json.dumps(encode(self)).encode(), 9)
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def from_token(cls, token: str) -> Self:
        """Make it from what `token` gave; raises `ConfigError` if it is no such word."""
        try:
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            return decode(cls, json.loads(zlib.decompress(packed)))
        except (ValueError, TypeError, zlib.error) as error:
            raise ConfigError(f"--replay: {token!r:.60} is none that a report has named") from error


# -- the search ------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """What a program has shown."""

    message: str  # what is wrong, in one sentence
    expected: str = ""  # what the model says
    found: str = ""  # what the plugin did, or where it was
    calls: tuple[str, ...] = ()  # the last calls, C-like, the last at the end


Attempt: TypeAlias = "Callable[[Program], Failure | None]"
"""Performs a program, and returns what was wrong."""


class _Found(Exception):  # noqa: N818  (no error: what the search is for)
    pass


def search(
    kinds: Sequence[StepKind],
    attempt: Attempt,
    *,
    programs: int,
    longest: int,
    seed: int,
    shrink_seconds: float = _SHRINK_SECONDS,
) -> tuple[Program, Failure] | None:
    """Try random programs until one fails, then smaller ones; return the smallest that failed.

    At most `shrink_seconds` are taken to make steps simpler, and again to leave steps out. Raises
    `Unsupported` where Hypothesis is not installed (the extra `check`).
    """
    try:
        import hypothesis  # noqa: PLC0415  (an extra)
        from hypothesis import strategies  # noqa: PLC0415
    except ImportError:
        raise Unsupported("Hypothesis is not installed: modular_tf[check] brings it") from None

    best: tuple[Program, Failure] | None = None
    deadline = math.inf

    def try_program(program: Program) -> None:
        nonlocal best, deadline
        if best is not None and time.monotonic() > deadline:
            if program == best[0]:
                raise _Found
            return  # small enough: nothing else is tried any more
        failure = attempt(program)
        if failure is not None:
            if best is None:
                deadline = time.monotonic() + shrink_seconds
            best = program, failure
            raise _Found

    # Lists of lists: Hypothesis makes single lists of some six elements, however long they might
    # be, and little happens in so few steps.
    root = math.isqrt(longest)
    pieces = strategies.lists(strategies.lists(step_strategy(kinds), max_size=root), max_size=root)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=programs,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(pieces)
    def try_drawn(drawn: list[list[Step]]) -> None:
        try_program(tuple(step for piece in drawn for step in piece))

    # What does not fail every time has failed at least once: `best` has it.
    with suppress(_Found, hypothesis.errors.Flaky):
        try_drawn()
    if best is None:
        return None
    return reduced(*best, attempt, deadline=time.monotonic() + shrink_seconds)


def step_strategy(kinds: Sequence[StepKind]) -> Any:
    """Return Hypothesis's strategy for a step of any of these kinds."""
    from hypothesis import strategies as st  # noqa: PLC0415  (an extra, and slow to load)

    def drawn(argument: Argument) -> Any:
        match argument:
            case Numbers(least, most):
                return st.integers(least, most)
            case Data(least, most):
                return st.binary(min_size=least, max_size=most).map(bytes.hex)
            case ListOf(of, most):
                return st.lists(drawn(of), max_size=most)
        return st.sampled_from(argument)

    return st.one_of(
        [  # arguments are lists, as they come back from JSON
            st.tuples(st.sampled_from(names), st.tuples(*map(drawn, arguments)).map(list))
            for names, arguments in kinds
        ]
    )


def reduced(
    program: Program, failure: Failure, attempt: Attempt, *, deadline: float
) -> tuple[Program, Failure]:
    """Return a program with as few steps as possible, and what it shows.

    Hypothesis makes single steps simpler; where each try is slow, as after a crash, it comes to few
    of them in long programs. This comes first to what matters: which steps there must be. It stops
    at the deadline, by the monotonic clock.
    """
    size = max(1, len(program) // 2)
    while time.monotonic() < deadline:
        before, at = len(program), 0
        while at < len(program) and time.monotonic() < deadline:
            smaller = program[:at] + program[at + size :]
            found = attempt(smaller) if smaller else None
            if found is None:
                at += size
            else:
                program, failure = smaller, found
        if len(program) == before:
            if size == 1:
                break
            size //= 2
        size = max(1, min(size, len(program) // 2))
    return program, failure


# -- the worker ------------------------------------------------------------------------------------


class SequenceWorker:
    """Performs programs in a process of its own, which a plugin may end at any step.

    The process is forked before the plugin is loaded, and forked anew when one was lost: so a
    program that crashes, hangs or ends it can be tried again and made smaller like any other. This
    process must not have loaded the plugin. Used by one thread.
    """

    def __init__(self, target: Target, check: Check, seconds: float) -> None:
        adopt_orphans()
        self._target = target
        self._check = check
        self._seconds = seconds  # that one program may take
        self._log = CallLog()
        self._child: WatchedChild | None = None
        self._programs = -1
        self._answer: dict[str, Any] | None = None

    def perform(self, program: Program) -> Failure | None:
        """Perform a program and return what was wrong, None for nothing.

        Raises `Blocked` where the plugin cannot be loaded.
        """
        child = self._child or self._start()
        child.give_time(self._seconds)
        self._answer = None
        left = json.dumps(program).encode() + b"\n"
        with suppress(BrokenPipeError):
            while left:
                left = left[os.write(self._programs, left) :]
        while self._answer is None and not child.is_over():
            child.listen()
        if self._answer is None or child.is_late:  # a question for its stack may end a wait
            return self._lost(child)
        match self._answer:
            case {"blocked": str(why), "see": list(see), "wants_root": bool(wants_root)}:
                raise Blocked(why, *see, wants_root=wants_root)
            case {"failure": failure}:
                return None if failure is None else decode(Failure, failure)
        raise RuntimeError(f"a worker failed: {self._answer.get('fault')}")

    def close(self) -> None:
        """End the process. Safe to call twice."""
        if self._child is not None:
            self._end(self._child)
        self._log.close()

    def _finish(self) -> None:
        """Have the process remove what it made below the root, and take the plugin down."""
        if (child := self._child) is not None:
            programs, self._programs = self._programs, -1
            os.close(programs)
            child.give_time(self._seconds)
            while not child.is_over():
                child.listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self.close()

    def _start(self) -> WatchedChild:
        theirs, self._programs = os.pipe()
        try:
            self._child = WatchedChild(
                partial(_serve, self._target, self._check, self._log, theirs),
                None,
                ChildEnding(),
                seconds=self._seconds,
                take=self._take,
            )
        finally:
            os.close(theirs)
        return self._child

    def _take(self, entry: dict[str, Any]) -> None:
        self._answer = entry

    def _lost(self, child: WatchedChild) -> Failure:
        """End the process, and return how it ended, or that it did not return."""
        self._end(child)
        ending = child.ending
        calls = self._log.calls(ending.thread)[-_MOST_CALLS:]
        if child.is_late:
            what = f"did not return within {self._seconds:g} s"
        elif ending.stopped_by is not None:
            what = f"was stopped by {signal_in_full(ending.stopped_by)}"
        else:
            what = ending.in_words()
        where = f" in {calls[-1]}" if calls else ""
        shown = "; ".join(ending.backtrace)
        return Failure(f"the plugin {what}{where}", "an answer", shown or what, calls)

    def _end(self, child: WatchedChild) -> None:
        self._child = None
        if self._programs >= 0:
            os.close(self._programs)
        child.end((self._target.path, *self._target.companions))


def _serve(
    target: Target, check: Check, log: CallLog, programs: int, ends: Sequence[int], parent: int
) -> NoReturn:
    """Perform the programs that come, until there are no more, and end the process."""
    try:
        programs = become_child(ends, parent, keep=programs)
        report = Report()
    except BaseException:  # noqa: BLE001  (there is no report yet; the parent sees it end)
        os._exit(1)
    try:
        dump_no_core()
        listen(log.add)
        report_crashes(REPORT)
        performer = performer_of(target.kind)
        session = session_of(target)
        with os.fdopen(programs, encoding="utf-8") as lines:
            for line in lines:
                log.clear()
                program = decode(Program, json.loads(line))
                failure = _performed(performer, session, check, program)
                report.write({"failure": None if failure is None else encode(failure)})
        session.close()
    except (Blocked, ModularTFError) as error:
        report.write(Blocked.by(error).as_entry())
    except BaseException:  # noqa: BLE001  (none of ours may count as the plugin's)
        report.write({"fault": traceback.format_exc()})
    os._exit(0)


def _performed(
    performer: Performer, session: Session, check: Check, program: Program
) -> Failure | None:
    session.calls.clear()
    try:
        with session.workspace(check) as workspace:
            performer.perform(workspace, program)
    except Deviation as deviation:
        calls = tuple(session.calls[-_MOST_CALLS:])
        return Failure(deviation.message, deviation.expected, deviation.found, calls)
    return None


# -- the checks ------------------------------------------------------------------------------------


def session_of_group(target: Target, group: str) -> Session:
    """Make the session of the checks of a group.

    Raises `Blocked` or `ModularTFError` where the target cannot be loaded.
    """
    return SequenceSession(target) if group == GROUP else session_of(target)


class SequenceSession(Session):
    """Has nothing loaded: the plugin is loaded by workers alone.

    `calls` are the statements of the smallest program that failed, and the command that replays it.
    """

    @contextmanager
    def workspace(self, check: Check) -> Iterator[SequenceSession]:
        """Return what the check's function is given."""
        self._check = check
        yield self

    def search(self) -> None:
        """Try random programs.

        Raises `Deviation` where one failed, `Unsupported` where Hypothesis is not installed, and
        `Blocked` where the plugin cannot be loaded. A deviation names the smallest program that
        fails, and how to replay it.
        """
        target, check = self.target, self._check
        performer, options = performer_of(target.kind), target.options
        with SequenceWorker(target, check, _SECONDS_OF_A_PROGRAM) as worker:
            best = search(
                performer.STEPS,
                worker.perform,
                programs=options.programs,
                longest=options.longest_program,
                seed=target.seed,
            )
        if best is None:
            return
        program, failure = best
        replay = Replay(check.id, target.reached, target.scheme, target.ordinal, program)
        words = (*target.repeated_by, "--replay", replay.token(), target.path)
        command = shlex.join(("modular-tf", "check", *words))
        self.calls[:] = [*performer.script(program)[-_MOST_STATEMENTS:], f"# {command}"]
        raise Deviation(
            f"{failure.message}, in a random sequence of {len(program)}",
            expected=failure.expected,
            found=failure.found,
        )
