"""The process that has imported everything once, and forks watchers.

It runs one thread, holds no descriptor of the application's but its socket, and runs no plugin's
code but that of one that comes with this package. It ends with the application.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from modular_tf.native.c_library import die_with_parent
from modular_tf.native.ffi import ffi
from modular_tf.native.preloading import forget_preload
from modular_tf.native.runtime_library import load_runtime
from modular_tf.processes.descendants import (
    adopt_orphans,
    children,
    end_all,
    signal_child,
    stat_of,
)
from modular_tf.processes.seclusion import (
    OPEN,
    SECLUDED,
    can_be_secluded,
    run_as_first,
    run_secluded,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Enter = Callable[[Callable[[], None], Callable[[int], object]], NoReturn]

_READY = b"r"
_CHECK_PARENT_EVERY_S = 1.0
_TIME_TO_LEAVE_S = 0.5  # for watchers, which end with those that they work for
_POLL_EVERY_S = 0.0005
_LONGEST_NUMBER = 32
_ENVIRONMENT_AT = slice(47, 49)  # of `stat_of`


def serve_zygote(
    *,
    control: int,
    parent: int,
    secludes: bool,
    warm_up: Callable[[], None],
    watch: Callable[[int], None],
    idle_s: float | None = None,
    has_lasting_watchers: bool = False,
) -> NoReturn:
    """Fork a watcher for each socket that arrives on `control`, then end the process.

    It ends with the application (`parent`), when the application closes its socket, and when it has
    had no watcher for `idle_s`. `warm_up` does once what watchers and their children would each do
    again; `watch` is what a watcher does with the descriptor of its socket.

    With `secludes` watchers get process numbers of their own, where that is possible. With
    `has_lasting_watchers` there are many, for long: a secluded one is then the first process of its
    namespaces, which what it watches cannot end, and not one of three.
    """
    _reset_signals()
    forget_preload()
    _blank_first_environment()
    adopt_orphans()
    logging.disable(logging.CRITICAL)  # reports say what there is to say
    load_runtime()
    warm_up()
    gc.collect()
    gc.disable()
    gc.freeze()
    is_secluded = secludes and can_be_secluded()

    ForkServer(
        control,
        watch
        if has_lasting_watchers or not is_secluded
        else lambda descriptor: run_secluded(partial(watch, descriptor)),
        idle_s=idle_s,
        ready=SECLUDED if is_secluded else OPEN,
        enter=run_as_first if is_secluded and has_lasting_watchers else None,
    ).serve(parent)


def _blank_first_environment() -> None:
    """Blank the text of the variables that this process was started with.

    The system shows it in `/proc/PID/environ`, also of every process that is forked, whatever
    variables that has: an instance may lack a secret of the application.
    """
    variables = dict(os.environb)
    os.environb.clear()
    os.environb.update(variables)  # the C library has copied them by now
    bounds = stat_of("self")[_ENVIRONMENT_AT] or (b"0", b"0")  # qemu-user leaves them out
    start, end = map(int, bounds)
    ffi.memmove(ffi.cast("char *", start), bytes(end - start), end - start)


def _reset_signals() -> None:
    """Set signals to what a new interpreter has."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):  # some are the C library's own
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class ForkServer:
    """Forks watchers, which are its only children: what else becomes one is killed.

    The process is to be the reaper of its descendants (`adopt_orphans`), with one thread. `ready`
    is the byte that the parent is sent when it begins. `enter` has a watcher's work done by another
    process, and ends the one that was forked: it is given the work, and a function that takes the
    number of the other process.
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
        """Fork watchers until the parent ends or closes its socket; then end them, and end."""
        with suppress(OSError):  # the parent is gone
            self._serve(parent)
        deadline = time.monotonic() + _TIME_TO_LEAVE_S
        while self._watchers and time.monotonic() < deadline:
            self._sweep()
            time.sleep(_POLL_EVERY_S)
        end_all()
        os._exit(0)

    def _serve(self, parent: int) -> None:
        self._control.settimeout(_CHECK_PARENT_EVERY_S)
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

        def work() -> None:
            os.close(writes)
            self._watch(descriptor)

        if pid == 0:
            try:
                os.close(reads)
                die_with_parent(me)
                self._control.close()
                os.setsid()
                if self._enter is None:
                    work()
                else:
                    self._enter(work, lambda number: os.write(writes, b"%d" % number))
            finally:
                os._exit(0)
        os.close(writes)
        try:
            # It is reported before the kernel makes the other one a child of this process.
            return int(os.read(reads, _LONGEST_NUMBER) or pid)
        finally:
            os.close(reads)
