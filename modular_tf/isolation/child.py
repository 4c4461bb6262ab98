"""The worker itself: loads a plugin, reports its offer, answers calls until the socket ends.

Its main thread opens the plugin and lives as long, since Landlock restricts a thread and those that
it starts. An application and a trial do it in a thread that ends, which asks more of a plugin.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from modular_tf.errors import FailedPreconditionError, ModularTFError
from modular_tf.first_contact.finding import Finding, Offer, noted
from modular_tf.isolation.job import WorkerOffer
from modular_tf.isolation.rights import give_up_rights, limit_reach, profile_of
from modular_tf.loading.bound_files import bound_files
from modular_tf.native.crash_report import report_crashes
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import name_plugin
from modular_tf.native.status import drop
from modular_tf.opening import OpenedPlugin
from modular_tf.processes.child import become_child
from modular_tf.processes.report import REPORT, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.isolation.job import Job, SetOptions


def run(job: Job, control: int, ends: Sequence[int], parent: int) -> NoReturn:
    """Load a plugin, serve it to channels that arrive on the socket `control`, and end the process.

    The arguments `ends` and `parent` are those of `become_child`.
    """
    try:
        control = become_child(ends, parent, keep=control)
        os.environ.clear()
        os.environ.update(job.environment)
        _end_first()
        # An interrupt is for the application; the terminal sends it to its whole group.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        report = Report()
        report_crashes(REPORT)
        served = _ServedPlugin(job)
        report.write({"offer": served.offer().as_dict()})
        served.serve(control)
        bound_files.mirrors.remove()
    except BaseException as error:  # noqa: BLE001  (the watcher tells what is written here)
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(1)
    os._exit(0)


def _end_first() -> None:
    """Have the kernel end this process before the application where memory is used up."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
        score.write(b"1000")


class _ServedPlugin:
    """The plugin of a worker, open within the rights that are left to it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._limits = give_up_rights()
        if job.schemes is not None:
            self._limit_reach(job.schemes)
        task = job.task
        name_plugin(task.plugin, task.file)
        self._opened = OpenedPlugin(task, bundled=job.bundled, on_offer=self._limit_to_offer)
        self._opened.open()
        self._filesystems = self._opened.filesystems
        if job.offered is not None:
            self._serve_as_before(job.offered)

    def _limit_to_offer(self, schemes: Sequence[str]) -> None:
        if self._job.schemes is None:
            self._limit_reach(schemes)

    def _limit_reach(self, schemes: Sequence[str]) -> None:
        task = self._job.task
        profile = profile_of(schemes, self._job.directories, self._job.environment)
        files = (task.file, *task.companions, *(seen.path for seen in task.checked or ()))
        self._limits += limit_reach(profile, files)

    def _serve_as_before(self, offered: Sequence[str]) -> None:
        """Order what is served as calls number it, and set its options if none is missing."""
        found = {filesystem.scheme: filesystem for filesystem in self._filesystems}
        self._filesystems = [found[scheme] for scheme in offered if scheme in found]
        if len(self._filesystems) == len(offered):
            for given in self._job.options:
                self._set_again(given)

    def _set_again(self, given: SetOptions) -> None:
        try:
            given.set_on(self._filesystems[given.filesystem])
        except ModularTFError as error:
            names = ", ".join(option.name for option in given.options)
            text = f"options that were set before cannot be set again ({names}): {error}"
            raise FailedPreconditionError(text) from error

    def offer(self) -> WorkerOffer:
        schemes = tuple(filesystem.scheme for filesystem in self._filesystems)
        finding = Finding(None, Offer(schemes), tuple(map(noted, self._opened.notes)))
        tables = tuple(dict(self._opened.tables[scheme].tables) for scheme in schemes)
        stores = tuple(map(self._store_of, self._filesystems))
        guarded = self._job.task.file in bound_files.guarded
        return WorkerOffer(finding, tables, stores, guarded, tuple(self._limits))

    def _store_of(self, filesystem: PluginFilesystem) -> int:
        shared = (filesystem.shares_store_with(other) for other in self._filesystems)
        return list(shared).index(True)

    def serve(self, control: int) -> None:
        array = ffi.new("mtf_filesystem *[]", [it.handle for it in self._filesystems])
        drop(lib.mtf_worker_serve(control, array, len(self._filesystems)))
        for filesystem in self._filesystems:
            with suppress(ModularTFError):
                filesystem.close(at_exit=True)
