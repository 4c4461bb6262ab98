"""Timers of the process that a plugin left running, and the signals that they send."""

from __future__ import annotations

import re
import signal
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
# Of timer_create(2): those of threads, and of none, send the process no signal.
_POSIX_TIMER = re.compile(r"^ID: (\d+)\nsignal: (\d+)/.*\nnotify: signal/pid", re.MULTILINE)
_BY_DEFAULT_IGNORED = frozenset(
    {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE, signal.SIGXFSZ}
)
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

    def timer(kind: str, number: int, sent: int) -> Timer:
        return Timer(kind, number, sent, handlers[sent] != _DEFAULT or sent in _BY_DEFAULT_IGNORED)

    found = {
        timer("interval", kind, sent)
        for kind, sent in _INTERVAL_TIMERS.items()
        if signal.getitimer(kind)[0]
    }
    with open("/proc/self/timers", encoding="utf-8", errors="replace") as listed:
        posix = _POSIX_TIMER.findall(listed.read())
    return frozenset(found | {timer("posix", int(number), int(sent)) for number, sent in posix})


def timer_changes(before: frozenset[Timer], after: frozenset[Timer]) -> Iterator[Violation]:
    """Yield a violation for each timer that was set in between."""
    for timer in sorted(after - before):
        what = f"left a timer running that sends {signal_name(timer.signal)}"
        if timer.is_handled:
            yield Violation(PROCESS_STATE_KEPT, what)
        else:
            yield Violation(NO_FATAL_TIMER, f"{what}, which ends the process")
