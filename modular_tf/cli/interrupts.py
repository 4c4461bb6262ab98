"""Ctrl-C: the first one interrupts, the second one ends the process at once.

Python handles signals between two of its own steps, which a call of a plugin that does not return
keeps it from. The second signal is for a handler in the native core, which needs no step of Python.
"""

from __future__ import annotations

from modular_tf.cli.arguments import PROGRAM
from modular_tf.cli.exit_codes import Exit
from modular_tf.native.load_callbacks import when_loaded

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
