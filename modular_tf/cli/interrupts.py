"""Ctrl-C: the first one interrupts, the second one leaves at once, whatever hangs.

Python handles signals between two of its own steps, which a call of a plugin that does not return
keeps it from. The second signal is for a handler in the native core, which needs no step of Python.
"""

from __future__ import annotations

from modular_tf.cli.arguments import PROGRAM
from modular_tf.cli.exit_codes import Exit
from modular_tf.native.load_callbacks import when_loaded

_wanted = False


def leave_on_second_interrupt() -> None:
    """Have it so from the time on when there is a core that calls plugins.

    For a process that is the command's own.
    """
    global _wanted  # noqa: PLW0603  (a process has one way to handle a signal)
    _wanted = True
    when_loaded(keep_leaving)


def keep_leaving() -> None:
    """Have it so again, if it was, after handlers were replaced."""
    if _wanted:
        from modular_tf.native.ffi import lib  # noqa: PLC0415  (help needs no native core)

        lib.mtf_leave_on_second_interrupt(PROGRAM.encode(), Exit.INTERRUPTED)
