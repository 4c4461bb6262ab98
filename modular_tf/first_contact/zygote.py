"""The zygote of first contact: has tried a plugin of our own, and forks watchers over trials."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.codec import decode, encode
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.filesystem.workarounds import import_stores
from modular_tf.first_contact.child import Rehearsal, fork_handler_count
from modular_tf.first_contact.journal import Journal
from modular_tf.first_contact.limits import Limits
from modular_tf.first_contact.process_state import ProcessState, changes, process_limits
from modular_tf.first_contact.trial import Trial
from modular_tf.first_contact.verdict import cannot_try
from modular_tf.loading.published import stores_of
from modular_tf.loading.task import Task
from modular_tf.processes.child_pipes import AbandonedError
from modular_tf.processes.report import Report
from modular_tf.processes.watched_child import watch_over
from modular_tf.processes.zygote import serve_zygote
from modular_tf.rules import loader_rules

if TYPE_CHECKING:
    from modular_tf.processes.watched_child import Tell

_IDLE_S = 30.0
_OWN_PLUGIN = os.path.join("plugins", "libposix_filesystem.so")


def serve(*, limits: dict[str, Any], **own: Any) -> NoReturn:
    """Fork watchers over trials, then end the process; see `zygotes_of` for the arguments."""
    may = decode(Limits, limits)
    serve_zygote(
        **own,
        warm_up=_warm_up,
        watch=lambda descriptor: watch_over_trials(descriptor, may),
        idle_s=_IDLE_S,
    )


def watch_over_trials(descriptor: int, limits: Limits) -> None:
    """Try the tasks that arrive on a socket until its other end is closed; report each finding."""

    def work(job: dict[str, Any], tell: Tell, listener: int) -> None:
        task = decode(Task, job)
        try:
            finding = Trial(task, limits, listener).finding()
        except AbandonedError:
            task.witness()
            raise
        except OSError as error:
            finding = cannot_try(f"no process can be started: {error}")
        tell(encode(finding))

    watch_over(descriptor, work)


def _warm_up() -> None:
    """Do once what every trial would do again."""
    loader_rules()
    stores_of("")  # which reads the table, whose reader an ordinary user may not see
    # What opening a plugin imports late, for the kinds and the known defects of few; and what the
    # check of a young file imports.
    import_stores()
    for module in ("device.platform", "loading.kernel_loader"):
        import_module(f"modular_tf.{module}")
    for module in ("hashlib", "mmap"):
        import_module(module)
    for file in (os.path.join(folder, _OWN_PLUGIN) for folder in package_directories()):
        if os.path.exists(file):
            _rehearse(file)
    changes(ProcessState.now(), ProcessState.now(), process_limits())
    fork_handler_count()


def _rehearse(file: str) -> None:
    """Try a plugin of our own here, for all that its first trial imports, compiles and computes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    Rehearsal(Task("own", file, kinds=("filesystem",)), Journal(Report(nowhere))).perform()
    os.close(nowhere)
