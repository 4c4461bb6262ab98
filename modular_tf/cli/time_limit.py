"""Calls into plugins with a time limit, made on a thread of their own."""

from __future__ import annotations

import os
import sys
import threading
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.cli.failures import report_error
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import DeadlineExceededError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")
_SILENCE_S = 2.0
"""How long a person is left without a word."""


def seconds(text: str) -> float:
    """Read a time limit, as argparse wants it."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= threading.TIMEOUT_MAX:
        raise ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


class TimeLimit:
    """Makes calls with a time limit.

    A call that does not return cannot be ended: its thread stays in the plugin's code, and so
    would whoever closes the plugin. `leave_if_stuck` is the way out.

    Attributes:
        seconds: How long a call may take.
        stuck_calls: How many took longer, or were interrupted by the user.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.stuck_calls = 0

    def call(self, what: str, work: Callable[[], _Result]) -> _Result:
        """Return or raise what `work` does.

        Args:
            what: The call, for messages.
            work: Is called on another thread.

        Raises:
            DeadlineExceededError: It did not return in time.
            ResourceExhaustedError: There is no thread for it; it was not called.
        """
        ended: list[tuple[Any, BaseException | None]] = []
        thread = threading.Thread(target=_make, args=(work, ended), name=what, daemon=True)
        self.stuck_calls += 1
        try:
            start_thread(thread)
        except ResourceExhaustedError:
            self.stuck_calls -= 1
            raise
        self._wait(thread, what)
        if not ended:
            raise DeadlineExceededError(f"{what} did not return within {self.seconds:g} s")
        self.stuck_calls -= 1
        result, error = ended.pop()
        if error is None:
            return result  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del error  # else it and this frame would keep each other, and what the call had opened

    def _wait(self, thread: threading.Thread, what: str) -> None:
        silence = min(_SILENCE_S, self.seconds)
        thread.join(silence)
        if thread.is_alive() and self.seconds > silence:
            if sys.stderr.isatty():
                report_error(f"{what} takes long; it is given up after {self.seconds:g} s")
            thread.join(self.seconds - silence)

    def leave_if_stuck(self, code: int) -> None:
        """End the process at once if a call is still running in a plugin."""
        if self.stuck_calls:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _make(work: Callable[[], _Result], ended: list[tuple[Any, BaseException | None]]) -> None:
    try:
        ended.append((work(), None))
    except BaseException as error:  # noqa: BLE001  (raised again in the waiting thread)
        ended.append((None, error))
