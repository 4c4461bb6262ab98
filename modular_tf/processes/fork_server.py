"""A process that forks one watcher for each socket that it is sent, and ends with its parent."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from modular_tf.native.parent_death import die_with_parent
from modular_tf.processes.descendants import children, end_all, signal_child

if TYPE_CHECKING:
    from collections.abc import Callable

    Enter = Callable[[Callable[[], None], Callable[[int], None]], NoReturn]

_READY = b"r"
_LOOK_FOR_PARENT_S = 1.0
_TIME_TO_LEAVE_S = 0.5  # for watchers, which end with those that they work for
_LOOK_EVERY_S = 0.0005
_LONGEST_NUMBER = 32


class ForkServer:
    """Forks watchers, which are its only children: what else becomes one is killed.

    The process is to be the reaper of its descendants (`adopt_orphans`), with one thread.

    Args:
        control: The descriptor of the socket that sockets arrive on.
        watch: What a watcher does with the descriptor of its socket.
        idle_s: After how many seconds without a watcher it ends; None for never.
        ready: The byte that tells the parent that this process is ready.
        enter: Has a watcher's work done by another process, and ends the one that was forked: it is
            given the work, and what takes the other one's number.
    """

    def __init__(
        self,
        control: int,
        watch: Callable[[int], None],
        *,
        idle_s: float | None = None,
        ready: bytes = _READY,
        enter: Enter | None = None,
    ) -> None:
        self._control = socket.socket(fileno=control)
        self._watch = watch
        self._idle_s = idle_s
        self._ready = ready
        self._enter = enter
        self._watchers: set[int] = set()

    def serve(self, parent: int) -> NoReturn:
        """Fork watchers until the parent ends or closes its socket; then end them, and end.

        Args:
            parent: The process that started this one.
        """
        with suppress(OSError):  # the parent is gone
            self._serve(parent)
        patience = time.monotonic() + _TIME_TO_LEAVE_S
        while self._watchers and time.monotonic() < patience:
            self._sweep()
            time.sleep(_LOOK_EVERY_S)
        end_all()
        os._exit(0)

    def _serve(self, parent: int) -> None:
        self._control.settimeout(_LOOK_FOR_PARENT_S)
        self._control.sendall(self._ready)
        idle_since = time.monotonic()
        while os.getppid() == parent:
            self._sweep()
            if self._watchers:
                idle_since = time.monotonic()
            elif self._idle_s is not None and time.monotonic() > idle_since + self._idle_s:
                return
            with suppress(TimeoutError):
                _, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
                if not descriptors:
                    return
                # Where there can be no more processes now, the others go on: who has asked for one
                # sees that its socket ends.
                with suppress(OSError):
                    self._watchers.add(self._fork(descriptors[0]))
                os.close(descriptors[0])

    def _sweep(self) -> None:
        """End watchers that a plugin has stopped, and what ended ones have left."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0] != 0:
                self._watchers.discard(found[0])
        for child in children(os.getpid()):
            if child not in self._watchers:
                signal_child(child, signal.SIGKILL)

    def _fork(self, descriptor: int) -> int:
        me = os.getpid()
        reads, writes = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(reads)
            os.close(writes)
            raise
        if pid == 0:
            try:
                os.close(reads)
                die_with_parent(me)
                self._control.close()
                os.setsid()
                self._begin(descriptor, writes)
            finally:
                os._exit(0)
        os.close(writes)
        try:
            # It is told before the kernel makes the other one a child of this process.
            return int(os.read(reads, _LONGEST_NUMBER) or pid)
        finally:
            os.close(reads)

    def _begin(self, descriptor: int, told: int) -> None:
        if self._enter is None:
            os.close(told)
            self._watch(descriptor)
            return

        def work() -> None:
            os.close(told)
            self._watch(descriptor)

        self._enter(work, lambda number: _write_number(told, number))


def _write_number(told: int, number: int) -> None:
    os.write(told, b"%d" % number)
