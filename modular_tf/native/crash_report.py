"""Reports of fatal signals and exits by the native core, in the form of `core/process_end.h`."""

from __future__ import annotations

import signal

from modular_tf.native.ffi import ffi, lib

QUESTION = signal.SIGQUIT
"""The signal that is answered with where the process is, if its parent sends it."""


def report_crashes(report: int) -> None:
    """Report fatal signals, exit() and `QUESTION` from now on; call once, on the main thread.

    They are written to the descriptor `report`. `OSError` if the handlers cannot be installed.
    """
    if lib.mtf_report_crashes(report, QUESTION) != 0:
        raise OSError("no handlers for crashes can be installed")


def expect_exit(status: int) -> None:
    """Report exit() with this status no more; call after `report_crashes`, on the main thread."""
    lib.mtf_expect_exit(status)


def signal_handlers() -> tuple[int, ...]:
    """Return the address of each signal's handler, by its number; 0 default, 1 ignored.

    Handlers of `report_crashes` are reported as the default action, which they stand for.
    """
    handlers = ffi.new("uintptr_t[]", signal.NSIG)
    lib.mtf_signal_handlers(handlers, signal.NSIG)
    return tuple(ffi.unpack(handlers, signal.NSIG))
