"""The process that has imported everything, and forks those that watch over trials.

It runs one thread, holds no descriptor of the application's but its socket, and runs no plugin's
code but that of one that comes with this package. It ends with the application.
"""

from __future__ import annotations

import gc
import logging
import os
from importlib import import_module
from typing import Any, NoReturn

from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.first_contact.descendants import adopt_orphans
from modular_tf.first_contact.fork_handlers import fork_handler_count
from modular_tf.first_contact.fork_server import ForkServer, reset_signals
from modular_tf.first_contact.journal import Journal
from modular_tf.first_contact.limits import Limits
from modular_tf.first_contact.process_limits import process_limits
from modular_tf.first_contact.process_state import ProcessState, changes
from modular_tf.first_contact.rehearsal import Rehearsal
from modular_tf.first_contact.seclusion import OPEN, SECLUDED, can_be_secluded, run_secluded
from modular_tf.first_contact.task import Task
from modular_tf.first_contact.warden import watch_over_trials
from modular_tf.native.preloading import forget_preload
from modular_tf.native.runtime_library import load_runtime
from modular_tf.rules import loader_rules

_IDLE_S = 30.0
_OWN_PLUGIN = os.path.join("plugins", "libposix_filesystem.so")


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
    reset_signals()
    forget_preload()
    adopt_orphans()
    _warm_up()
    may = Limits.from_dict(limits)
    secluded = secludes and can_be_secluded()

    def watch(descriptor: int) -> None:
        if secluded:
            run_secluded(lambda: watch_over_trials(descriptor, may))
        watch_over_trials(descriptor, may)

    ready = SECLUDED if secluded else OPEN
    ForkServer(control, watch, idle_s=_IDLE_S, ready=ready).serve(parent)


def _warm_up() -> None:
    """Do once what every trial would do again."""
    logging.disable(logging.CRITICAL)  # what is to be told, findings tell
    load_runtime()
    loader_rules()
    # What opening a filesystem imports late, for plugins with known defects alone; and what looking
    # at a young file does.
    import_module("modular_tf.filesystem.workarounds.object_store")
    import_module("hashlib")
    for file in (os.path.join(folder, _OWN_PLUGIN) for folder in package_directories()):
        if os.path.exists(file):
            _rehearse(file)
    list(changes(ProcessState.now(), ProcessState.now(), process_limits()))
    fork_handler_count()
    gc.collect()
    gc.disable()
    gc.freeze()


def _rehearse(file: str) -> None:
    """Try a plugin of our own here, for all that its first trial imports, compiles and computes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    Rehearsal(Task("own", file, kinds=("filesystem",)), Journal(nowhere)).perform()
    os.close(nowhere)
