"""Services that are open, so that the end of the process and a fork reach all of them."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Protocol

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.errors import ClosedError
from modular_tf.service.log_output.listener import listener

if TYPE_CHECKING:
    from modular_tf.errors import ModularTFError


class LiveService(Protocol):
    """What a service does at the two moments that it cannot choose."""

    def close_at_exit(self) -> list[ModularTFError]:
        """Run every plugin's cleanup; return what went wrong."""

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable, or give it up; raise nothing."""


_live: LiveObjects[LiveService] = LiveObjects()
_ending = threading.Event()


def keep_in_sight(service: LiveService) -> None:
    """Tell a service of exit and fork, as long as somebody holds it.

    Python runs no exit handler that another one registers. So a service that an exit handler makes
    after the others were closed ends when the interpreter lets go of it and of its files: what is
    open is written out, and plugins' cleanup functions run, as those hold each other.

    Raises:
        ClosedError: The process ends, and this is not the thread that runs exit handlers. Others
            are stopped wherever they are, and one in a plugin's code would abort the process.
    """
    thread = threading.current_thread()
    if _ending.is_set() and thread is not threading.main_thread():
        raise ClosedError(
            "the process ends, and all plugin services are closed; end the thread"
            f" {thread.name!r} before, or let the process wait for it (daemon=False)"
        )
    _live.add(service)


def _close_all() -> None:
    """Run cleanups while the interpreter is whole: without, some plugins abort the process.

    Raises:
        ModularTFError: The first failure, such as data that could not be written; Python prints
            it.
    """
    _ending.set()
    failures: list[BaseException] = []
    for service in _live.all():
        try:
            failures += service.close_at_exit()
        except BaseException as interrupt:  # noqa: BLE001  (the others are to be closed as well)
            failures.append(interrupt)
    listener.stop()  # after the cleanups, which may log as well
    if failures:
        raise failures[0]


def _fork_all() -> None:
    for service in _live.all():
        service.after_fork_in_child()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_fork_all)
