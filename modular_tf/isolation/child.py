"""The worker itself: loads a plugin, tells what it offers, answers calls until the socket ends."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from modular_tf.errors import FailedPreconditionError, ModularTFError, PluginError
from modular_tf.filesystem.opening import open_filesystem
from modular_tf.first_contact.finding import Finding, Offer, noted
from modular_tf.isolation.job import WorkerOffer
from modular_tf.isolation.rights import give_up_rights, limit_reach, profile_of
from modular_tf.loading.filesystem_tables import FilesystemTables
from modular_tf.loading.guarded_functions import is_guarded
from modular_tf.loading.loader import init_filesystems, map_file
from modular_tf.loading.origin_folder import remove_mirrors
from modular_tf.native.crash_report import report_crashes
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import name_plugin
from modular_tf.native.status import drop
from modular_tf.processes.child import become_child
from modular_tf.processes.report import REPORT, Report
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import SCHEME_INIT_SUCCEEDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.isolation.job import Job, SetOptions


def run(job: Job, control: int, ends: Sequence[int], parent: int) -> NoReturn:
    """Load a plugin, serve it, and end the process.

    Args:
        job: What to load.
        control: The socket on which channels arrive.
        ends: The descriptors that become standard output, standard error, and the report.
        parent: The process that waits for this one; when it ends, this one is killed.
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
        loaded = _Loading(job)
        loaded.load()
        report.write({"offer": loaded.offer().as_dict()})
        loaded.serve(control)
        remove_mirrors()
    except BaseException as error:  # noqa: BLE001  (the watcher tells what is written here)
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(1)
    os._exit(0)


def _end_first() -> None:
    """Have the kernel end this process before the application where memory is used up."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
        score.write(b"1000")


class _Loading:
    """One plugin, as far as it is loaded."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._limits = give_up_rights()
        if job.schemes is not None:
            self._limit_reach(job.schemes)
        self._notes: list[Violation] = []
        self._served: list[tuple[FilesystemTables, PluginFilesystem]] = []

    def offer(self) -> WorkerOffer:
        schemes = tuple(tables.scheme for tables, _ in self._served)
        finding = Finding(None, Offer(schemes, None, 0, 0), tuple(map(noted, self._notes)))
        tables = tuple(dict(tables.tables) for tables, _ in self._served)
        stores = tuple(self._store_of(filesystem) for _, filesystem in self._served)
        guarded = is_guarded(self._job.task.file)
        return WorkerOffer(finding, tables, stores, guarded, tuple(self._limits))

    def _store_of(self, filesystem: PluginFilesystem) -> int:
        shared = (filesystem.shares_store_with(other) for _, other in self._served)
        return list(shared).index(True)

    def load(self) -> None:
        task = self._job.task
        name_plugin(task.plugin, task.file)
        try:
            library = map_file(task.file, task.companions, task.absent, checked=task.checked)
            offer = init_filesystems(library, plugin=task.plugin)
        except PluginError as error:
            self._notes.append(Violation.of_error(error, "load"))
            return
        self._note(offer.violations)
        if self._job.schemes is None:
            self._limit_reach([entry.scheme for entry in offer.entries if entry.scheme is not None])
        for entry in offer.entries:
            if isinstance(entry, FilesystemTables):
                self._note(entry.warnings, entry.scheme)
                self._open(entry)
            else:
                self._note(entry.violations, entry.scheme)
        if self._job.offered is not None:
            self._serve_as_before(self._job.offered)

    def _limit_reach(self, schemes: Sequence[str]) -> None:
        task = self._job.task
        profile = profile_of(schemes, self._job.directories, self._job.environment)
        files = (task.file, *task.companions, *(seen.path for seen in task.checked or ()))
        self._limits += limit_reach(profile, files)

    def _open(self, tables: FilesystemTables) -> None:
        task = self._job.task
        try:
            opened = open_filesystem(
                tables, plugin=task.plugin, path=task.file, bundled=self._job.bundled
            )
        except ModularTFError as error:
            self._note([Violation(SCHEME_INIT_SUCCEEDS, error.message)], tables.scheme)
        else:
            self._served.append((tables, opened.filesystem))
            self._note(opened.warnings, tables.scheme)

    def _serve_as_before(self, offered: Sequence[str]) -> None:
        """Put what is served into the order that calls know; they come where none is missing."""
        found = {entry[0].scheme: entry for entry in self._served}
        self._served = [found[scheme] for scheme in offered if scheme in found]
        if len(self._served) == len(offered):
            for given in self._job.options:
                self._set_again(given)

    def _set_again(self, given: SetOptions) -> None:
        try:
            given.set_on(self._served[given.filesystem][1])
        except ModularTFError as error:
            names = ", ".join(option.name for option in given.options)
            text = f"options that were set before cannot be set again ({names}): {error}"
            raise FailedPreconditionError(text) from error

    def _note(self, violations: Iterable[Violation], scheme: str | None = None) -> None:
        self._notes += [found.of_scheme(scheme).at("init") for found in violations]

    def serve(self, control: int) -> None:
        handles = [filesystem.handle for _, filesystem in self._served]
        array = ffi.new("mtf_filesystem *[]", handles)
        drop(lib.mtf_worker_serve(control, array, len(handles)))
        for _, filesystem in self._served:
            with suppress(ModularTFError):
                filesystem.close(at_exit=True)
