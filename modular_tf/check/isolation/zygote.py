"""The process that has imported all checks, and forks those that watch over them.

Its interpreter is started anew, with the user's whole environment: a plugin is checked as the user
runs it. It holds no descriptor of the application's but its socket.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.catalogue import all_checks
from modular_tf.check.isolation.watcher import watch_over_checks
from modular_tf.check.limits import Limits
from modular_tf.check.staging import import_stages
from modular_tf.first_contact.descendants import adopt_orphans
from modular_tf.first_contact.fork_server import ForkServer, reset_signals
from modular_tf.native.preloading import forget_preload
from modular_tf.native.runtime_library import load_runtime

if TYPE_CHECKING:
    from collections.abc import Callable

_START = """\
import json, sys
path, module, job = json.loads(sys.argv[1])
sys.path[:] = path
from importlib import import_module
import_module(module).serve(**job)
"""


def command_for(python: str, module: str, job: dict[str, Any]) -> list[str]:
    """Return the command of a process that calls `serve` of a module; it imports as this one does.

    Args:
        python: The interpreter.
        module: The name of the module.
        job: The arguments of its `serve`, as JSON knows them.
    """
    return [python, "-c", _START, json.dumps([sys.path, module, job])]


def zygote_command(python: str, *, limits: Limits, scratch: str) -> Callable[[int, str], list[str]]:
    """Return what makes the command of a zygote, for `ZygoteProcess`.

    It imports from where this process does.

    Args:
        python: The interpreter.
        limits: How long checks may take.
        scratch: The directory in which processes get one of their own.
    """

    def command(control: int, mark: str) -> list[str]:
        job = {
            "control": control,
            "parent": os.getpid(),
            "limits": asdict(limits),
            "scratch": scratch,
            "mark": mark,
        }
        return command_for(python, __name__, job)

    return command


def serve(
    *,
    control: int,
    parent: int,
    limits: dict[str, Any],
    scratch: str,
    mark: str,  # noqa: ARG001  (it stands on the command line, to be seen there)
) -> NoReturn:
    """Fork a watcher for each socket that arrives, until the application ends or closes its own.

    Args:
        control: The descriptor of the socket that sockets arrive on.
        parent: The application.
        limits: The fields of `Limits`.
        scratch: The directory in which processes get one of their own.
        mark: Tells this process and its forks from all others.
    """
    reset_signals()
    forget_preload()
    adopt_orphans()
    logging.disable(logging.CRITICAL)  # what is to be told, outcomes tell
    load_runtime()
    all_checks()
    import_stages()
    gc.collect()
    gc.disable()
    gc.freeze()
    watch = partial(watch_over_checks, limits=Limits(**limits), scratch=scratch)
    ForkServer(control, watch).serve(parent)
