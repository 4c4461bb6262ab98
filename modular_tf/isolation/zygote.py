"""The zygote of workers, which never runs code of plugins; their watchers; the worker itself."""

from __future__ import annotations

import math
import os
import signal
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.codec import decode, encode
from modular_tf.errors import FailedPreconditionError, ModularTFError
from modular_tf.first_contact.finding import Finding, Offer, noted
from modular_tf.isolation.job import ASK, ENDED, OFFER, READY, Job, SentTable, WorkerOffer
from modular_tf.isolation.rights import give_up_rights, limit_reach, profile_of, rights_here
from modular_tf.loading.bound_files import bound_files
from modular_tf.native.crash_report import report_crashes
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import name_plugin
from modular_tf.native.status import drop
from modular_tf.opening import OpenedPlugin, warm_up
from modular_tf.processes.child import REPORT, Report, become_child
from modular_tf.processes.descendants import living_descendants
from modular_tf.processes.ending import ChildEnding, signal_in_full
from modular_tf.processes.watched_child import AbandonedError, WatchedChild, watch_over
from modular_tf.processes.zygote import serve_zygote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.processes.watched_child import Send

_IDLE_S = 60.0
_WAKE_EVERY_S = 1.0
_MOST_PROCESSES = 512  # of a worker, with itself


def serve(**own: Any) -> NoReturn:
    """Fork a watcher for each worker, then end the process."""
    serve_zygote(
        **own, warm_up=_warm_up, watch=watch_over_worker, idle_s=_IDLE_S, has_lasting_watchers=True
    )


def _warm_up() -> None:
    warm_up()
    rights_here()


# -- the watcher -----------------------------------------------------------------------------------


def watch_over_worker(descriptor: int) -> None:
    """Run the worker whose job arrives on a socket until it ends, or the application is gone."""
    watch_over(descriptor, _work)


def _work(job: dict[str, Any], send: Send, listener: int) -> None:
    send({READY: os.getpid()})
    control = _socket_from(listener)
    work = decode(Job, job)
    ending = ChildEnding()
    offers: list[Any] = []

    def take(entry: dict[str, Any]) -> None:
        offer = entry[OFFER]
        if not offers:  # a plugin may write any number
            offers.append(offer)
            send({OFFER: offer})

    def send_end(words: str) -> None:
        frames = list(ending.backtrace)
        send({ENDED: {"words": words, "frames": frames, "last_output": ending.last_output}})

    try:
        live = partial(run, work, control)
        child = WatchedChild(live, listener, ending, seconds=math.inf, take=take)
    except OSError as error:
        send_end(f"could not be started: {error}")
        return
    finally:
        os.close(control)
    try:
        has_too_many = _watch(child, listener)
    finally:
        child.end((work.task.file, *work.task.companions))
    if has_too_many:
        send_end(f"had more than {_MOST_PROCESSES} processes and was ended")
    elif ending.stopped_by is not None:
        send_end(f"was stopped by {signal_in_full(ending.stopped_by)} and ended")
    else:
        send_end(ending.in_words())


def _watch(child: WatchedChild, listener: int) -> bool:
    """Wait until the worker is to be ended; return whether it has too many processes."""
    next_look = 0.0
    while not child.is_over():
        try:
            child.listen(_WAKE_EVERY_S)
        except AbandonedError:
            if not _is_asked(listener):
                raise
            child.ask()
        if time.monotonic() >= next_look:  # not each time that it writes something
            if len(living_descendants(os.getpid(), _MOST_PROCESSES)) > _MOST_PROCESSES:
                return True
            next_look = time.monotonic() + _WAKE_EVERY_S
    return False


def _socket_from(listener: int) -> int:
    """Return the descriptor that the application sends now."""
    with socket.socket(fileno=os.dup(listener)) as connection:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if not descriptors:
        raise AbandonedError
    return descriptors[0]


def _is_asked(listener: int) -> bool:
    """Return whether the application asks for the worker's end; it is gone otherwise."""
    with socket.socket(fileno=os.dup(listener)) as connection, suppress(OSError):
        return connection.recv(1, socket.MSG_DONTWAIT) == ASK
    return False


# -- the worker ------------------------------------------------------------------------------------


def run(job: Job, control: int, ends: Sequence[int], parent: int) -> NoReturn:
    """Load a plugin, serve it to channels that arrive on the socket `control`, and end the process.

    The main thread opens the plugin and lives as long, since Landlock restricts a thread and those
    that it starts. An application and a trial do it in a thread that ends, which asks more of a
    plugin. The arguments `ends` and `parent` are those of `become_child`.
    """
    try:
        control = become_child(ends, parent, keep=control)
        os.environ.clear()
        os.environ.update(job.environment)
        # The kernel ends this process before the application where memory is used up.
        with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as score:
            score.write(b"1000")
        # An interrupt is for the application; the terminal sends it to its whole group.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        report = Report()
        report_crashes(REPORT)
        served = _ServedPlugin(job)
        report.write({OFFER: encode(served.offer())})
        served.serve(control)
        bound_files.mirrors.remove()
    except BaseException as error:  # noqa: BLE001  (the watcher reports what is written here)
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(1)
    os._exit(0)


class _ServedPlugin:
    """The plugin of a worker, open within the rights that are left to it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._limits = give_up_rights()
        task, schemes = job.task, job.schemes
        if schemes is not None:  # they are known before its code runs
            self._limit_reach(schemes)
        name_plugin(task.plugin, task.file)
        self._opened = OpenedPlugin(
            task,
            bundled=job.bundled,
            on_offer=lambda offer: self._limit_reach(offer) if schemes is None else None,
        )
        self._opened.open()
        self._filesystems = self._opened.filesystems
        if job.offered is not None:
            self._serve_as_before(job.offered)

    def _limit_reach(self, schemes: Sequence[str]) -> None:
        task = self._job.task
        profile = profile_of(schemes, self._job.directories, self._job.environment)
        files = (task.file, *task.companions, *(seen.path for seen in task.checked or ()))
        self._limits += limit_reach(profile, files)

    def _serve_as_before(self, offered: Sequence[str]) -> None:
        """Order what is served as calls number it, and set its options if none is missing."""
        found = {filesystem.scheme: filesystem for filesystem in self._filesystems}
        self._filesystems = [found[scheme] for scheme in offered if scheme in found]
        for given in self._job.options if len(self._filesystems) == len(offered) else ():
            try:
                given.set_on(self._filesystems[given.filesystem])
            except ModularTFError as error:
                names = ", ".join(option.name for option in given.options)
                text = f"options that were set before cannot be set again ({names}): {error}"
                raise FailedPreconditionError(text) from error

    def offer(self) -> WorkerOffer:
        schemes = tuple(filesystem.scheme for filesystem in self._filesystems)
        opened = (self._opened.tables[scheme].tables for scheme in schemes)
        return WorkerOffer(
            Finding(None, Offer(schemes), tuple(map(noted, self._opened.notes))),
            tuple([SentTable.of(table) for table in each.values()] for each in opened),
            stores=tuple(map(self._store_of, self._filesystems)),
            guarded=self._job.task.file in bound_files.guarded,
            limits=tuple(self._limits),
        )

    def _store_of(self, filesystem: PluginFilesystem) -> int:
        shared = (filesystem.shares_store_with(other) for other in self._filesystems)
        return list(shared).index(True)

    def serve(self, control: int) -> None:
        array = ffi.new("mtf_filesystem *[]", [it.handle for it in self._filesystems])
        drop(lib.mtf_worker_serve(control, array, len(self._filesystems)))
        for filesystem in self._filesystems:
            with suppress(ModularTFError):
                filesystem.close(at_exit=True)
