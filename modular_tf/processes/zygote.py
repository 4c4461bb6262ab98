"""The process that has imported everything once, and forks watchers.

It runs one thread, holds no descriptor of the application's but its socket, and runs no plugin's
code but that of one that comes with this package. It ends with the application.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from modular_tf.native.ffi import ffi
from modular_tf.native.preloading import forget_preload
from modular_tf.native.runtime_library import load_runtime
from modular_tf.processes.descendants import adopt_orphans
from modular_tf.processes.fork_server import ForkServer
from modular_tf.processes.seclusion import (
    OPEN,
    SECLUDED,
    can_be_secluded,
    run_as_first,
    run_secluded,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_ENVIRONMENT_AT = slice(47, 49)  # of /proc/PID/stat behind the name of the command


def serve_zygote(
    *,
    control: int,
    parent: int,
    secludes: bool,
    warm_up: Callable[[], None],
    watch: Callable[[int], None],
    idle_s: float | None = None,
    is_lasting: bool = False,
) -> NoReturn:
    """Fork a watcher for each socket that arrives, then end the process.

    It ends with the application, when the application closes its socket, and when it is idle. The
    first three arguments come from `Zygotes`.

    Args:
        control: The descriptor of the socket that sockets arrive on.
        parent: The application.
        secludes: Whether watchers get process numbers of their own, where that is possible.
        warm_up: Imports and computes what watchers and their children would each do again.
        watch: What a watcher does with the descriptor of its socket.
        idle_s: After how many seconds without a watcher it ends; None for never.
        is_lasting: There are many watchers, for long: a secluded one is then the first process of
            its namespaces, which what it watches cannot end, and not one of three.
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

    def watch_secluded(descriptor: int) -> None:
        run_secluded(lambda: watch(descriptor))

    ForkServer(
        control,
        watch_secluded if is_secluded and not is_lasting else watch,
        idle_s=idle_s,
        ready=SECLUDED if is_secluded else OPEN,
        enter=run_as_first if is_secluded and is_lasting else None,
    ).serve(parent)


def _blank_first_environment() -> None:
    """Blank the text of the variables that this process was started with.

    The system shows it in `/proc/PID/environ`, also of every process that is forked, whatever
    variables that has: an instance may lack a secret of the application.
    """
    variables = dict(os.environb)
    os.environb.clear()
    os.environb.update(variables)  # the C library has copied them by now
    with open("/proc/self/stat", "rb") as stream:
        numbers = stream.read().rpartition(b")")[2].split()
    bounds = numbers[_ENVIRONMENT_AT] or (b"0", b"0")  # qemu-user leaves them out
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
