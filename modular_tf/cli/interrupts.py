"""Ctrl-C: the first one interrupts, the second one ends the process at once.

Python handles signals between two of its own steps, which a call of a plugin that does not return
keeps it from. The second signal is for a handler in the native core, which needs no step of Python.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import PROGRAM
from modular_tf.native.load_callbacks import when_loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

_wanted = False


def leave_on_second_interrupt() -> None:
    """Make the second interrupt end the process, as soon as the native core is loaded.

    For a process that is the command's own.
    """
    global _wanted  # noqa: PLW0603  (a process has one way to handle a signal)
    _wanted = True
    when_loaded(keep_leaving)


def keep_leaving() -> None:
    """Install the handler again, if it was installed, after handlers were replaced."""
    if _wanted:
        from modular_tf.native.ffi import lib  # noqa: PLC0415  (help needs no native core)

        lib.mtf_leave_on_second_interrupt(PROGRAM.encode(), Exit.INTERRUPTED)


def leave() -> None:
    """End the process now, without waiting for calls of plugins that other threads make.

    Does nothing where the process is not the command's own: its user may interrupt one thing and go
    on with another.
    """
    if _wanted:
        import os  # noqa: PLC0415  (help needs none of these)
        import sys  # noqa: PLC0415

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(Exit.INTERRUPTED)  # what else runs at the end would wait, or take the plugin away


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM, which `timeout` and services send, end the block as Ctrl-C does.

    The second one ends the process. In other threads than the main one signals stay as they are.

    Raises:
        KeyboardInterrupt: In the block, where the signal comes.
    """
    import signal  # noqa: PLC0415  (help needs no signals)
    import threading  # noqa: PLC0415

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
