"""A process that performs programs on a plugin, and may be lost by it at any step.

It is forked before the plugin is loaded, and forked anew when one was lost; so a program that
crashes, hangs or ends it can be tried again and made smaller like any other.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.calls import listen
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.isolation.call_log import CallLog
from modular_tf.check.sequences.performers import performer_of
from modular_tf.check.sequences.program import Program
from modular_tf.check.session import session_of
from modular_tf.errors import ModularTFError
from modular_tf.native.c_library import die_with_parent
from modular_tf.native.crash_report import QUESTION, report_crashes
from modular_tf.processes.ending import ChildEnding, readable_frames
from modular_tf.processes.watched_child import EntryReader

if TYPE_CHECKING:
    from typing_extensions import Self

    from modular_tf.check.check import Check
    from modular_tf.check.sequences.performers import Performer
    from modular_tf.check.session import Session
    from modular_tf.check.target import Target

_AT_ONCE = 1 << 16
_MOST_CALLS = 40
_TIME_TO_ANSWER_S = 2.0
_TIME_TO_DIE_S = 0.05
_ANSWERS = frozenset({"failure", "blocked", "fault"})


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that a program found.

    Attributes:
        message: What is wrong, in one sentence.
        expected: What the model says.
        found: What the plugin did, or where it was.
        calls: The last calls, C-like, the last at the end.
    """

    message: str
    expected: str = ""
    found: str = ""
    calls: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return asdict(self)


class SequenceWorker:
    """Performs programs in a process of its own. Used by one thread.

    Args:
        target: The plugin, which this process must not have loaded.
        check: The check that asks.
        seconds: How long one program may take.
    """

    def __init__(self, target: Target, check: Check, seconds: float) -> None:
        self._target = target
        self._check = check
        self._seconds = seconds
        self._log = CallLog()
        self._pid = 0
        self._to = self._from = -1
        self._read = EntryReader(self._take)
        self._answered: dict[str, Any] | None = None
        self._ending = ChildEnding()

    def perform(self, program: Program) -> Failure | None:
        """Perform a program and return what was wrong, None for nothing.

        Raises:
            Blocked: The plugin cannot be loaded.
        """
        if self._pid == 0:
            self._start()
        with suppress(BrokenPipeError):
            _write(self._to, program.as_json())
        answer = self._answer(time.monotonic() + self._seconds)
        match answer:
            case None:
                return self._lost()
            case {"blocked": str(why)}:
                raise Blocked(why)
            case {"fault": str(text)}:
                raise RuntimeError(text)
            case {"failure": None}:
                return None
            case {"failure": dict(failure)}:
                return Failure(**{**failure, "calls": tuple(failure["calls"])})
        raise RuntimeError(f"a worker returned {answer!r:.200}")

    def close(self) -> None:
        """End the process. Safe to call twice."""
        self._end()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the process ----------------------------------------------------------------------------

    def _start(self) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        me = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._to)
            os.close(self._from)
            _serve(self._target, self._check, self._log, (theirs_in, theirs_out), me)
        os.close(theirs_in)
        os.close(theirs_out)
        self._read, self._ending = EntryReader(self._take), ChildEnding()

    def _answer(self, deadline: float) -> dict[str, Any] | None:
        """Return the next answer, None where the process has ended or has not returned."""
        self._answered = None
        while self._answered is None and not self._ending.has_all_frames:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                break
            data = os.read(self._from, _AT_ONCE)
            if not data:
                break
            self._read(data)
        return self._answered

    def _take(self, entry: dict[str, Any]) -> None:
        if not self._ending.take(entry) and _ANSWERS & entry.keys():
            self._answered = entry

    def _lost(self) -> Failure:
        """Say how the process ended, or that it did not return; it is ended afterwards."""
        ending = self._ending
        hung = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        hung = hung and not ending.has_crash_report
        if hung:
            os.kill(self._pid, QUESTION)
            self._answer(time.monotonic() + _TIME_TO_ANSWER_S)
        calls = self._log.calls(ending.thread)[-_MOST_CALLS:]
        ending.status = self._end()
        what = f"did not return within {self._seconds:g} s" if hung else ending.in_words()
        where = f" in {calls[-1]}" if calls else ""
        files = (self._target.path, *self._target.companions)
        shown = "; ".join(readable_frames(ending.frames, files))
        return Failure(f"the plugin {what}{where}", "an answer", shown or what, calls)

    def _end(self) -> int:
        """End the process and return its status as `os.waitstatus_to_exitcode` does."""
        if self._pid == 0:
            return 0
        pid, self._pid = self._pid, 0
        os.close(self._to)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == 0:
            if self._ending.has_crash_report:  # its last words are said: what follows is its end
                time.sleep(_TIME_TO_DIE_S)
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        os.close(self._from)
        return os.waitstatus_to_exitcode(status)


# -- in the process -------------------------------------------------------------------------------


def _serve(
    target: Target, check: Check, log: CallLog, ends: tuple[int, int], parent: int
) -> NoReturn:
    """Perform the programs that come, until there are no more, and end the process."""
    reads, writes = ends
    try:
        die_with_parent(parent)
        listen(log.add)
        report_crashes(writes)
        _perform_all(target, check, log, reads, writes)
    except (Blocked, ModularTFError) as error:
        _write(writes, json.dumps({"blocked": str(error)}))
    except BaseException:  # noqa: BLE001  (none of ours may count as the plugin's)
        with suppress(OSError):
            _write(writes, json.dumps({"fault": traceback.format_exc()}))
    os._exit(0)


def _perform_all(target: Target, check: Check, log: CallLog, reads: int, writes: int) -> None:
    performer = performer_of(target.kind)
    with os.fdopen(reads, encoding="utf-8") as programs:
        stage = session_of(target)
        for line in programs:
            log.clear()
            failure = performed(performer, stage, check, Program.from_json(line))
            _write(writes, json.dumps({"failure": failure and failure.as_dict()}))
    stage.close()


def performed(
    performer: Performer, stage: Session, check: Check, program: Program
) -> Failure | None:
    """Perform a program in this process, and return what was wrong.

    Args:
        performer: Knows the programs of this kind of plugin.
        stage: The plugin.
        check: The check that asks.
        program: The program.
    """
    stage.calls.clear()
    try:
        with stage.workspace(check) as ground:
            performer.perform(ground, program)
    except Deviation as deviation:
        calls = tuple(stage.calls[-_MOST_CALLS:])
        return Failure(deviation.message, deviation.expected, deviation.found, calls)
    return None


def _write(descriptor: int, text: str) -> None:
    left = text.encode() + b"\n"
    while left:
        left = left[os.write(descriptor, left) :]
