"""The process that has imported everything, and forks those that watch over trials.

It runs one thread, holds no descriptor of the application's but its socket, and never runs a
plugin's code. It ends with the application.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from modular_tf.first_contact.descendants import adopt_orphans, children, end_all
from modular_tf.first_contact.limits import Limits
from modular_tf.first_contact.process_state import ProcessState, changes
from modular_tf.first_contact.seclusion import can_be_secluded, run_secluded
from modular_tf.first_contact.warden import watch_over_trials
from modular_tf.loading.known_defects import known_defects
from modular_tf.native.parent_death import die_with_parent
from modular_tf.native.runtime_library import load_runtime
from modular_tf.rules import all_rules

_READY = b"r"
_LOOK_FOR_PARENT_S = 1.0
_IDLE_S = 30.0


def serve(
    *,
    control: int,
    parent: int,
    limits: dict[str, Any],
    secludes: bool,
    mark: str,  # noqa: ARG001  (it stands on the command line, to be seen there)
) -> NoReturn:
    """Fork a watcher for each socket that arrives, then end, and do not return.

    It ends with the application, when the application closes its socket, and after a while in
    which nobody has asked for anything.

    Args:
        control: The descriptor of the socket that sockets arrive on.
        parent: The application.
        limits: What `Limits.as_dict` gave.
        secludes: Whether plugins get process numbers of their own, where that is possible.
        mark: Tells this process and its forks from all others.
    """
    _be_python_anew()
    adopt_orphans()
    _warm_up()
    secluded = secludes and can_be_secluded()
    zygote = _Zygote(socket.socket(fileno=control), Limits.from_dict(limits), secluded=secluded)
    with suppress(OSError):  # the application is gone
        zygote.serve(parent)
    end_all()
    os._exit(0)


class _Zygote:
    """Its watchers, by process id."""

    def __init__(self, control: socket.socket, limits: Limits, *, secluded: bool) -> None:
        self._control = control
        self._limits = limits
        self._secluded = secluded
        self._wardens: set[int] = set()

    def serve(self, parent: int) -> None:
        self._control.settimeout(_LOOK_FOR_PARENT_S)
        self._control.sendall(_READY)
        idle_since = time.monotonic()
        while os.getppid() == parent:
            self._sweep()
            if self._wardens:
                idle_since = time.monotonic()
            elif time.monotonic() > idle_since + _IDLE_S:
                return
            with suppress(TimeoutError):
                _, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
                if not descriptors:
                    return
                self._wardens.add(self._fork_warden(descriptors[0]))
                os.close(descriptors[0])

    def _sweep(self) -> None:
        """End watchers that a plugin has stopped, and what ended ones have left."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0] != 0:
                self._wardens.discard(found[0])
        for child in children(os.getpid()):
            if child not in self._wardens:
                os.kill(child, signal.SIGKILL)

    def _fork_warden(self, fd: int) -> int:
        me = os.getpid()
        pid = os.fork()
        if pid != 0:
            return pid
        try:
            die_with_parent(me)
            self._control.close()
            os.setsid()
            if self._secluded:
                run_secluded(lambda: watch_over_trials(fd, self._limits))
            watch_over_trials(fd, self._limits)
        finally:
            os._exit(0)


def _be_python_anew() -> None:
    """Set signals as an interpreter finds them that nobody has told anything."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):  # some are the C library's own
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _warm_up() -> None:
    """Do once what every trial would do again."""
    logging.disable(logging.CRITICAL)  # what is to be told, findings tell
    load_runtime()
    all_rules()
    known_defects()
    import_module("modular_tf.filesystem.answered")  # what opening a filesystem imports late
    list(changes(ProcessState.now(), ProcessState.now()))
    gc.collect()
    gc.disable()
    gc.freeze()
