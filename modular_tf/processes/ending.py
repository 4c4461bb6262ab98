"""How a child ended, as it reported and as its watcher saw it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Annotated, Any

from modular_tf.codec import between, decode
from modular_tf.processes.backtrace import MOST_FRAMES
from modular_tf.processes.signal_names import signal_in_full

CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
)
_UNCAUGHT = "terminate called after throwing"
_Flag: Any = Annotated[int, between(0, 1)]
_Signal: Any = Annotated[int, between(1, signal.NSIG - 1)]
_Status: Any = Annotated[int, between(0, 255)]
_Thread: Any = Annotated[int, between(1, (1 << 32) - 1)]
_Number: Any = Annotated[int, between(0, (1 << 64) - 1)]


@dataclass(slots=True)
class ChildEnding:
    """How a child ended; the fields are filled as they become known."""

    status: int | None = None  # exit status, negative for a signal; None where it would not end
    thread: int | None = None  # the one that reports the end, as the kernel counts threads
    signal: int | None = None  # seen by its crash handler, with `errno` and `overflow`
    errno: int = 0
    overflow: bool = False  # of the stack
    exits: int | None = None  # the status that `exit` was called with
    stopped_by: int | None = None  # the signal that stopped it
    has_tracer: bool = False  # that signal stopped it as it has asked to be traced (ptrace)
    frames: list[Any] = field(default_factory=list)  # native, innermost first, from the core
    is_traced: bool = False  # all frames have come
    backtrace: tuple[str, ...] = ()  # the frames as users read them (`readable_frames`)
    said: str = ""  # the last that was written to standard output and standard error

    def take(self, entry: Any) -> bool:
        """Take an entry of a report; False where it is none of the native core's.

        `native/core/process_end.h` has their form. A plugin may have written the entry: raises
        `ValueError` for one of the core's with a value that the core never writes.
        """
        match sorted(decode(dict[str, Any], entry)):
            case ["asked"]:
                pass
            case ["errno", "overflow", "signal"]:
                is_overflow = decode(_Flag, entry["overflow"]) == 1
                number = decode(_Signal, entry["signal"])
                self.errno = decode(_Number, entry["errno"])
                self.signal, self.overflow = number, is_overflow
            case ["exits"]:
                self.exits = decode(_Status, entry["exits"])
            case ["frame"]:
                frame = decode(list[Any], entry["frame"])
                self.frames += [frame][: MOST_FRAMES - len(self.frames)]
            case ["thread"]:
                self.thread = decode(_Thread, entry["thread"])
            case ["traced"]:
                decode(_Flag, entry["traced"] or None)
                self.is_traced = True
            case _:
                return False
        return True

    @property
    def is_told(self) -> bool:
        """Whether the child has reported its end itself."""
        return self.signal is not None or self.exits is not None

    @property
    def fatal_signal(self) -> int | None:
        """The signal that ended it; one that its handler saw was first."""
        if self.signal is not None:
            return self.signal
        return -self.status if self.status is not None and self.status < 0 else None

    @property
    def exit_status(self) -> int | None:
        """The status that it exited with, None where it is not known."""
        return self.status if self.exits is None else self.exits

    def in_words(self) -> str:
        """Return how it ended, as a verb and its object: `crashed with SIGSEGV (signal 11)`."""
        number = self.fatal_signal
        if number is None or self.exits is not None:
            status = self.exit_status
            return "ended the process" + ("" if status is None else f" with exit status {status}")
        if number == signal.SIGKILL:
            return "was killed with SIGKILL (signal 9, perhaps for want of memory)"
        return f"{self._verb(number)} {signal_in_full(number)}"

    def _verb(self, number: int) -> str:
        if number == signal.SIGABRT:
            uncaught = _UNCAUGHT in self.said
            return "let an exception escape and aborted with" if uncaught else "aborted with"
        if number not in CRASHES:
            return "was ended by"
        return "overflowed the stack and crashed with" if self.overflow else "crashed with"
