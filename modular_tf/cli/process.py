"""The process of a command: its exit codes, standard streams, and what ends it: Ctrl-C and others.

Standard streams are usable also if the caller has closed them. The first Ctrl-C interrupts, the
second one ends the process at once: Python handles signals between two of its own steps, which a
call of a plugin that does not return keeps it from, so the second signal is for a handler in the
native core.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from modular_tf.native.load_callbacks import when_loaded

if TYPE_CHECKING:
    from collections.abc import Buffer, Iterator  # type: ignore[attr-defined,unused-ignore]

PROGRAM = "modular-tf"
COMPLETION_VARIABLE = "_MODULAR_TF_COMPLETE"
"""With it a shell requests the words that may follow COMP_LINE, and runs no command."""

_OUTPUT = 1
_STANDARD_ERROR = 2
_ACCESS = {0: os.O_WRONLY, _OUTPUT: os.O_RDONLY, _STANDARD_ERROR: os.O_WRONLY}
"""What stands in for a closed stream: input and output then fail, as they should."""


class Exit(IntEnum):
    """The exit codes; they are part of the command line's contract.

    Attributes:
        DONE: The command did what was requested.
        NO: A check failed, nothing has that name, an operation failed, or output was not written.
        USAGE: The words of the command, or settings that it was given, make no sense.
        NOTHING: Nothing was found or checked.
        OUR_FAULT: An error of this package; `-v` shows the traceback.
        INTERRUPTED: The user interrupted the command, as shells count the interrupt signal; or
            SIGTERM or SIGHUP ended a command that has reported what was known by then.
    """

    DONE = 0
    NO = 1
    USAGE = 2
    NOTHING = 3
    OUR_FAULT = 70
    INTERRUPTED = 130


class OutputError(OSError):
    """Standard output cannot be written to any more."""


class ReaderGoneError(BrokenPipeError):
    """The reader of standard output has closed it."""


class _Output(io.BufferedWriter):
    """Standard output, whose failures are distinguished from those of other files.

    No code of Python stands between the buffer and the file: an interrupt there would leave bytes
    in the buffer that are written already, and they would be written twice.

    Python may flush it when it has cleared this module already. So names of the module are used
    only where that fails.
    """

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _failure_of_output(error) from None

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise _failure_of_output(error) from None


def _failure_of_output(error: OSError) -> OSError:
    kind = ReaderGoneError if isinstance(error, BrokenPipeError) else OutputError
    return kind(error.errno, error.strerror)


_outlook: int = Exit.DONE


def expect_exit(code: int) -> None:
    """Note the exit code that the command will have, also if the reader of its output leaves now.

    To be called before what it found is written.
    """
    global _outlook  # noqa: PLW0603  (a process runs one command at a time)
    _outlook = code


def expected_exit() -> int:
    """Return the exit code that was noted, `Exit.DONE` by default."""
    return _outlook


def prepare() -> None:
    """Make the standard streams usable; a stream that replaced Python's own is left alone.

    A descriptor that the caller has closed is opened, or the next file would get its number, and
    with it all that a plugin prints.
    """
    expect_exit(Exit.DONE)
    for descriptor, access in _ACCESS.items():
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, access), descriptor)
            os.set_inheritable(descriptor, True)  # noqa: FBT003
    if sys.stdout is sys.__stdout__:
        original, raw = sys.__stdout__, io.FileIO(_OUTPUT, "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            _Output(raw),
            encoding="utf-8" if original is None else original.encoding,
            errors="strict" if original is None else original.errors,
            line_buffering=raw.isatty() or getattr(original, "write_through", False),
        )
    if sys.stderr is None:
        sys.stderr = open(  # type: ignore[unreachable,unused-ignore]  # noqa: SIM115
            _STANDARD_ERROR, "w", errors="backslashreplace", closefd=False, encoding="utf-8"
        )


def require_reader() -> None:
    """Raise ReaderGoneError if standard output is a pipe or a terminal that nobody has any more.

    For a command that may have nothing to write for hours.
    """
    output = select.poll()
    output.register(_OUTPUT, 0)
    if any(state & (select.POLLERR | select.POLLHUP) for _, state in output.poll(0)):
        raise ReaderGoneError(errno.EPIPE, os.strerror(errno.EPIPE))


def give_up(stream: TextIO) -> None:
    """Drop a stream's buffer, which Python would write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# -- interrupts -----------------------------------------------------------------------------------

_wanted = False


def leave_on_second_interrupt() -> None:
    """Make the second interrupt end the process, as soon as the native core is loaded.

    For a process that is the command's own.
    """
    global _wanted  # noqa: PLW0603  (a process has one way to handle a signal)
    _wanted = True

    def install() -> None:
        from modular_tf.native.ffi import lib  # noqa: PLC0415  (help needs no native core)

        lib.mtf_leave_on_second_interrupt(PROGRAM.encode(), Exit.INTERRUPTED)

    when_loaded(install)


def leave() -> None:
    """End the process now, without waiting for calls of plugins that other threads make.

    Does nothing where the process is not the command's own: its user may interrupt one thing and go
    on with another.
    """
    if _wanted:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(Exit.INTERRUPTED)  # what else runs at the end would wait, or take the plugin away


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise `KeyboardInterrupt` in the block.

    `timeout` and services send the first, a terminal that is closed the second; where that is
    ignored, as under `nohup`, it stays so. The second signal of a kind ends the process. In other
    threads than the main one signals stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
