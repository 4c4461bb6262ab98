"""Timers of the process that a plugin left running, and the signals that they send."""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.native.crash_report import signal_handlers
from modular_tf.processes.signal_names import signal_name
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import NO_FATAL_TIMER, PROCESS_STATE_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTERVAL_TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
    signal.ITIMER_PROF: signal.SIGPROF,
}
# Of timer_create(2), but for those that send nothing.
_POSIX_TIMER = re.compile(
    r"^ID: (\d+)\nsignal: (\d+)/.*\nnotify: signal/(pid|tid)\.(\d+)$", re.MULTILINE
)
_OF_THREADS = 32  # by which the C library wakes the thread that calls a timer's function
_BY_DEFAULT_IGNORED = frozenset(
    {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE, signal.SIGXFSZ}
)
_BLOCKED = re.compile(rb"^SigBlk:\s*([0-9a-f]+)", re.MULTILINE)
_DEFAULT = 0


class Timer(NamedTuple):
    """A timer that is set.

    Attributes:
        kind: "interval" or "posix".
        number: Its number among those of its kind.
        signal: The signal that it sends.
        is_handled: Whether the process survives the signal.
    """

    kind: str
    number: int
    signal: int
    is_handled: bool


def timers_of_process() -> frozenset[Timer]:
    """Return the timers that are set.

    Raises:
        OSError: The timers cannot be read.
    """
    handlers = signal_handlers()

    def timer(kind: str, number: int, sent: int, *, is_awaited: bool = False) -> Timer:
        is_handled = is_awaited or handlers[sent] != _DEFAULT or sent in _BY_DEFAULT_IGNORED
        return Timer(kind, number, sent, is_handled)

    found = {
        timer("interval", kind, sent)
        for kind, sent in _INTERVAL_TIMERS.items()
        if signal.getitimer(kind)[0]
    }
    with open("/proc/self/timers", encoding="utf-8", errors="replace") as listed:
        posix = _POSIX_TIMER.findall(listed.read())
    for number, sent, to, receiver in posix:
        is_awaited = to == "tid" and _awaits(receiver, int(sent))
        found.add(timer("posix", int(number), int(sent), is_awaited=is_awaited))
    return frozenset(found)


def _awaits(thread: str, number: int) -> bool:
    """Return whether a thread blocks a signal or waits for it: then the signal ends nothing."""
    if number == _OF_THREADS:
        return True
    with suppress(OSError):
        folder = f"/proc/self/task/{thread}"
        with open(f"{folder}/status", "rb") as status, open(f"{folder}/wchan", "rb") as place:
            blocked = _BLOCKED.search(status.read())
            is_waiting = place.read().startswith(b"do_sigtimedwait")
        return is_waiting or (blocked is not None and bool(int(blocked[1], 16) >> number - 1 & 1))
    return False


def timer_changes(before: frozenset[Timer], after: frozenset[Timer]) -> Iterator[Violation]:
    """Yield a violation for each timer that was set in between."""
    for timer in sorted(after - before):
        what = "left a timer running that "
        if timer.signal == _OF_THREADS:
            what += "calls a function in a thread of its own (SIGEV_THREAD)"
        else:
            what += f"sends {signal_name(timer.signal)}"
        if timer.is_handled:
            yield Violation(PROCESS_STATE_KEPT, what)
        else:
            yield Violation(NO_FATAL_TIMER, f"{what}, which ends the process")
