"""How a child ended, as it reported and as its watcher saw it, in words that users can read.

A plugin may have written all of it: so what it says is bounded, and plain on any terminal.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from modular_tf.codec import between, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MUTE_STATUS = 119
"""The exit status of a child that can write nothing to its report any more."""
CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
)
_UNCAUGHT = "terminate called after throwing"
_Signal: Any = Annotated[int, between(1, signal.NSIG - 1)]
_Status: Any = Annotated[int, between(0, 255)]
_Thread: Any = Annotated[int, between(1, (1 << 32) - 1)]
_Number: Any = Annotated[int, between(0, (1 << 64) - 1)]
_Flag: Any = Annotated[int, between(0, 1)]
MOST_FRAMES = 64
_HOST = (
    "_cffi_backend.",
    "_core.",
    "libffi",
    "libpython",
    "python",
)  # what follows them is the host's own way to the call
_COPY = "/memfd:"
_MOST_OF_A_FILE, _MOST_OF_A_SYMBOL = 700, 300  # together as much as `Incident` keeps of a frame
_MOST_DIGITS = 1 << 14
_Address: Any = Annotated[int, between(0, (1 << 64) - 1)]
_LONGEST_NAME = 200  # of a copy, as `private_copy` gives it


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
    has_all_frames: bool = False  # all frames have come
    backtrace: tuple[str, ...] = ()  # the frames as users read them (`readable_frames`)
    last_output: str = ""  # the end of the text on standard output and standard error

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
                self.has_all_frames = True
            case _:
                return False
        return True

    @property
    def has_crash_report(self) -> bool:
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
            uncaught = _UNCAUGHT in self.last_output
            return "let an exception escape and aborted with" if uncaught else "aborted with"
        if number not in CRASHES:
            return "was ended by"
        return "overflowed the stack and crashed with" if self.overflow else "crashed with"


# -- text ------------------------------------------------------------------------------------------

MOST_OF_A_CALL = 200
MOST_OF_A_MESSAGE = 2000
MOST_OF_LAST_WORDS = 4096


def plain(text: str, most: int = MOST_OF_A_CALL) -> str:
    """Return the beginning of a text in one line, with `?` for what is no character."""
    if text.isprintable():
        return text[:most]
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text[:most])


def plain_lines(text: str) -> str:
    """Return the end of a text, as `plain` does, with its lines."""
    last = text[-MOST_OF_LAST_WORDS:].split("\n")
    return "\n".join(plain(line, MOST_OF_LAST_WORDS) for line in last)


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11; `signal 40` for a number without a name, as real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_in_full(number: int) -> str:
    """Return `SIGSEGV (signal 11)`; `signal 40` for a number without a name."""
    name = signal_name(number)
    return name if name.endswith(f" {number}") else f"{name} (signal {number})"


# -- native frames ---------------------------------------------------------------------------------


def readable_frames(frames: Sequence[Any], files: Iterable[str]) -> tuple[str, ...]:
    """Return frames as `FILE SYMBOL+0xOFFSET`, the innermost first, up to the host's own.

    They should come as `native/core/process_end.h` has them, but may be anything; of the plugin's
    files private copies may be mapped.
    """
    names = [os.fsencode(os.path.basename(file)) for file in files]
    copies = {os.fsdecode(n[:_LONGEST_NAME]): file for n, file in zip(names, files, strict=True)}
    shown = []
    for frame in frames[:MOST_FRAMES]:
        try:
            file, symbol, offset = frame
            name = plain(_text(file)[-_MOST_OF_A_FILE:], _MOST_OF_A_FILE)
            function = plain(_text(symbol), _MOST_OF_A_SYMBOL)
            address = f"{decode(_Address, offset):#x}"
        except (TypeError, ValueError):
            continue
        if is_host_library(name):
            break
        place = f"{function}+{address}" if function else address
        if name.startswith(_COPY):
            name = copies.get(name.removeprefix(_COPY).removesuffix(" (deleted)"), name)
        shown.append(f"{name or 'nowhere'} {place}")
    return tuple(shown)


def is_host_library(path: str) -> bool:
    """Return whether a mapped file is the host's, by its name."""
    return os.path.basename(path).startswith(_HOST)


def _text(digits: Any) -> str:
    if not isinstance(digits, str):  # a dictionary has slices as keys from Python 3.12 on
        raise TypeError
    return os.fsdecode(bytes.fromhex(digits[:_MOST_DIGITS]))


# -- sanitizers ------------------------------------------------------------------------------------

# Compiled where they are used: most processes have no such report.
_BEGIN = r"(?:ERROR|WARNING): \w+Sanitizer: |: runtime error: "
_SUMMARY = r"(?m)^SUMMARY: (\w+Sanitizer): (.+)$"
_RUNTIME_ERROR = r"(?m): runtime error: (.+)$"
_FILE_OF_FRAME = r"\(([^()]+)\+0x[0-9a-f]+\)$"
_UNDEFINED = "UndefinedBehaviorSanitizer"


class SanitizerReport(NamedTuple):
    """The report of a sanitizer."""

    sanitizer: str  # such as `AddressSanitizer`
    what: str  # in short: `double-free heap.cc:12 in release`
    # From what is wrong to the summary, as far as they were kept; without empty lines, and without
    # frames from the host's own on.
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.sanitizer} reported {self.what}"


def sanitizer_report(last_output: str) -> SanitizerReport | None:
    """Find the report in what a process wrote to standard error; None where there is none."""
    summary = re.search(_SUMMARY, last_output)
    if summary is not None:
        sanitizer, what = summary.groups()
    elif (error := re.search(_RUNTIME_ERROR, last_output)) is not None:
        sanitizer, what = _UNDEFINED, error[1]
    else:
        return None
    begin = re.search(_BEGIN, last_output)
    first = 0 if begin is None else last_output.rfind("\n", 0, begin.start()) + 1
    last = len(last_output) if summary is None else summary.start()
    lines = []
    in_host = False
    for line in last_output[first:last].splitlines():
        file = re.search(_FILE_OF_FRAME, line)  # None where it names a source file instead
        is_host = file is not None and is_host_library(file[1])
        in_host = line.lstrip().startswith("#") and (in_host or is_host)
        if line.strip() and not in_host:
            lines.append(line)
    return SanitizerReport(sanitizer, what.strip(), tuple(lines))
