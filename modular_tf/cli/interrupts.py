"""Ctrl-C: the first one interrupts, the second one leaves at once, whatever hangs.

Python handles signals between two of its own steps, which a call of a plugin that does not return
keeps it from. The second signal is for a handler in the native core, which needs no step of Python.
"""

from __future__ import annotations

import threading

from modular_tf.cli.arguments import PROGRAM
from modular_tf.cli.exit_codes import Exit

_wanted = False


def leave_on_second_interrupt() -> None:
    """Have it so from now on, in a process that is the command's own."""
    global _wanted  # noqa: PLW0603  (a process has one way to handle a signal)
    _wanted = True
    keep_leaving()


def keep_leaving() -> None:
    """Have it so again, if it was, after handlers were replaced."""
    if _wanted and threading.current_thread() is threading.main_thread():
        from modular_tf.native.ffi import lib  # noqa: PLC0415  (help needs no native core)

        lib.mtf_leave_on_second_interrupt(PROGRAM.encode(), Exit.INTERRUPTED)
