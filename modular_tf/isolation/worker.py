"""A plugin's worker as the native core calls it: started again when it has ended."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakValueDictionary

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ModularTFError, UnavailableError
from modular_tf.events import EventLog
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.isolation.job import SetOptions
from modular_tf.isolation.rights import why_refused
from modular_tf.isolation.worker_process import WorkerProcess
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import is_interrupted, keep_interrupt
from modular_tf.processes.descendants import children, memory_use
from modular_tf.processes.ending import MOST_OF_A_MESSAGE, plain
from modular_tf.redaction import redacted
from modular_tf.rules.first_contact import WORKER_STARTS
from modular_tf.rules.shortage import ShortageError, raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import FrameType

    from modular_tf.filesystem.configuration import Option
    from modular_tf.isolation.job import Job, WorkerOffer
    from modular_tf.isolation.worker_process import WorkerEnding

_log = EventLog("isolation")
_MOST_FRAMES_SHOWN = 8
_WITHIN_S = 300.0
_REPORT_TIMEOUT_S = 5.0
_TIME_WITH_HANGING_CALLS_S = 0.2
_TIME_TO_END_S = 1.0  # by itself, when its channel has ended
_numbers = count(1)
_workers: WeakValueDictionary[int, Worker] = WeakValueDictionary()


class Worker:
    """The worker of one plugin, through all its processes. [any thread]

    Each call, loading and the plugin's cleanup have a timeout, None for none. After `most_faults`
    within five minutes it is not started again before these are over; 0 for never.
    """

    def __init__(
        self,
        job: Job,
        *,
        call_timeout_s: float | None,
        start_timeout_s: float,
        close_timeout_s: float,
        most_faults: int,
    ) -> None:
        self.plugin = job.task.plugin
        self.instance = job.instance  # "" for the plugin itself
        self.environment: Mapping[str, str] = job.environment
        self.limits: tuple[str, ...] = ()  # what its process was restricted to (`rights.ALL`)
        self.restarts = 0  # how many processes ended while they were used
        self.last_fault = ""  # how the last of these ended
        # Called before each process but the first is started; what it raises ends the call that
        # needs the process.
        self.before_restart: Callable[[], object] | None = None
        self._job = job
        self._call_timeout_s = call_timeout_s
        self._start_timeout_s = start_timeout_s
        self._close_timeout_s = close_timeout_s
        self._lock = ForkLock()
        self._reporting = ForkLock()
        self._process: WorkerProcess | None = None
        self._run = 0
        self._offer: WorkerOffer | None = None  # of its first process
        self._users = 0
        self._faults: deque[float] = deque(maxlen=most_faults)
        self._options: tuple[SetOptions, ...] = ()
        number = next(_numbers)
        _workers[number] = self
        milliseconds = 0 if call_timeout_s is None else max(1, round(call_timeout_s * 1000))
        made = lib.mtf_worker_new(number, named(self.plugin), milliseconds)
        self.handle: Any = ffi.gc(made, lib.mtf_worker_release)  # the core's `mtf_worker`

    def load(self) -> WorkerOffer:
        """Start the first process, and return what it offers.

        Raises `UnavailableError` if it cannot be started, ended while it loaded the plugin, or does
        not serve what the first one did (LD-144); `ShortageError` for want of descriptors.
        """
        owner = os.getpid()
        try:
            return self._load()
        except (UnavailableError, ShortageError):
            if owner == os.getpid():
                raise
        return self._load()  # a signal handler forked meanwhile, and the process is the parent's

    def _load(self) -> WorkerOffer:
        first = self._offer
        offered = None if first is None else first.schemes
        try:
            process = WorkerProcess(self._job._replace(offered=offered, options=self._options))
        except OSError as error:
            raise_shortage(error)
            raise self._unstarted(f"no process can be started: {error}") from error
        try:
            offer = self._offer_of(process)
            self._offer = first or offer
            self.limits = offer.limits
            with self._lock:
                self._process = process
        except BaseException:
            process.release()
            raise
        return offer

    def _offer_of(self, process: WorkerProcess) -> WorkerOffer:
        offer = process.wait_for_offer(self._start_timeout_s)
        if offer is None:
            if process.ending is None:
                process.ask_for_end()
            raise self._unstarted(_described(process.wait_for_end(_REPORT_TIMEOUT_S)))
        first = self._offer
        if first is not None and offer.schemes != first.schemes:
            raise self._unstarted(_missing(first, offer))
        return offer

    def _unstarted(self, why: str) -> UnavailableError:
        text = f"the worker process of {self.plugin} {why}"
        return UnavailableError(text, plugin=self.plugin, rule=WORKER_STARTS.id)

    def start(self, run: int) -> int:
        """Return the socket to the process with this number, started now unless `load` did."""
        if self._run > 0 or self._process is None:
            self.ended(self._run, is_late=False)  # the failed call may not have reported it
            self._require_rest()
            if self.before_restart is not None:
                self.before_restart()
            self.load()
        _log.info("worker.started", plugin=self.plugin, run=run)
        control = self._take_control(run)  # at the end: an interrupt would lose it
        if control is None:
            raise self._unstarted("was closed by another thread while it started")
        return control

    def _take_control(self, run: int) -> int | None:
        """Take the socket to the current process, which gets this number; None for no process."""
        control = None
        try:
            with self._lock:
                process = self._process
                if process is not None:
                    control = process.take_control()
                    self._run = run
            return control  # noqa: TRY300  (after the block an interrupt would lose it)
        except BaseException:
            if control is not None:
                os.close(control)
            raise

    def _require_rest(self) -> None:
        """Refuse another start where processes have ended too often."""
        most = self._faults.maxlen
        if not most or len(self._faults) < most:
            return
        left = self._faults[0] + _WITHIN_S - time.monotonic()
        if left > 0:
            raise UnavailableError(
                f"the worker process of {self.plugin} ended {most} times within "
                f"{_WITHIN_S / 60:g} minutes and is not started again for {left:.0f} s; "
                f"the last time it {self.last_fault}",
                plugin=self.plugin,
                rule=WORKER_STARTS.id,
            )

    def ended(self, run: int, *, is_late: bool) -> str:
        """Return how a process ended, as a sentence about a call; one that is late is ended now."""
        name = f"the worker process of {self.plugin}"
        with self._reporting:  # a second thread waits for what the first one finds out
            with self._lock:
                process = self._process if run == self._run else None
                if process is not None:
                    self._process = None
            if process is not None and not process.is_own:
                process.wait_for_end(0)
                process = None
            late = f"gave no answer within {self._call_timeout_s:g} s" if is_late else ""
            if process is None:  # another thread has reported it
                return f"{name} {self.last_fault or late or 'has ended'}"
            lives = is_late or not process.ends_within(_TIME_TO_END_S)
            if lives:
                process.ask_for_end()
            ending = process.wait_for_end(_REPORT_TIMEOUT_S)
            self.restarts += 1
            self._faults.append(time.monotonic())
            words = _described(ending)
            if lives:
                words = f"{late or 'takes no more calls'} and was ended{_frames(ending)}"
            self.last_fault = words
            _log.warning("worker.ended", plugin=self.plugin, run=run, message=words)
            return f"{name} {words}; the next call starts a new one"

    def why_refused(self) -> str:
        """Return what may have refused its plugin something, for a message; "" for nothing."""
        return why_refused(self.limits)

    @property
    def watcher(self) -> int:
        """The number of the process that watches over the current one; 0 for none."""
        process = self._process
        return 0 if process is None else process.watcher

    @property
    def is_used(self) -> bool:
        """Whether a filesystem uses it."""
        return self._users > 0

    def keep_options(self, filesystem: int, options: Sequence[Option], *, is_single: bool) -> None:
        """Have options that were set also set in each process that is started anew."""
        latest = SetOptions(filesystem, tuple(options), is_single)
        with self._lock:
            kept = (earlier for earlier in self._options if not latest.replaces(earlier))
            self._options = (*kept, latest)

    def join(self) -> None:
        """Count one more filesystem that uses it."""
        with self._lock:
            self._users += 1

    def calls(self) -> tuple[int, int]:
        """Return how many calls were made, and how many of them are under way."""
        state = ffi.new("mtf_worker_state *")
        lib.mtf_worker_get_state(self.handle, state)
        return int(state.calls), int(state.in_flight)

    def begin_rest(self, calls: int) -> Callable[[], object] | None:
        """End the idle process; the next call starts another.

        Returns a function that waits for its end; None where calls were made since, and it goes on.
        """
        with self._lock:  # so that a call which starts another one sees that this one has no fault
            if not lib.mtf_worker_rest(self.handle, calls):
                return None
            process, run = self._process, self._run
            self._process = None
        if process is None:
            return lambda: None
        _log.info("worker.rests", plugin=self.plugin, run=run)
        return partial(_end_left, process, self._close_timeout_s)

    def leave(self) -> None:
        """Count one less; the last one ends the process, when the plugin has cleaned up."""
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
        state = ffi.new("mtf_worker_state *")
        lib.mtf_worker_stop(self.handle, round(self._close_timeout_s * 1000))
        lib.mtf_worker_get_state(self.handle, state)
        lib.mtf_worker_close(self.handle)
        hangs = state.given_up + state.in_flight > 0
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end_left(process, _TIME_WITH_HANGING_CALLS_S if hangs else self._close_timeout_s)


def _end_left(process: WorkerProcess, seconds: float) -> None:
    """Wait for the end of a process whose connection has been given up."""
    process.close_control()  # where no call was ever made
    process.wait_for_end(seconds)


class WorkerRecord(NamedTuple):
    """A worker as it is at one moment.

    Attributes:
        plugin: The name of its plugin.
        instance: The instance that it serves; "" for the plugin itself.
        pid: The number of its process, as the application sees it; 0 for none now.
        memory_bytes: What the process has touched, without files.
        calls: How many calls were made of it.
        in_flight: How many of them are under way.
        restarts: How many of its processes ended while they were used.
        last_fault: How the last of these ended; "" for none.
        limits: What it is restricted to.
    """

    plugin: str
    instance: str
    pid: int
    memory_bytes: int
    calls: int
    in_flight: int
    restarts: int
    last_fault: str
    limits: tuple[str, ...]


def worker_of(filesystem: object) -> Worker | None:
    """Return the worker of a filesystem, None for one without."""
    place = filesystem.tables.place if isinstance(filesystem, PluginFilesystem) else None
    return None if place is None else cast("Worker", place.worker)


def workers_of(filesystems: Iterable[object]) -> list[WorkerRecord]:
    """Return what the workers of some filesystems do now, in order of their plugins."""
    workers = filter(None, map(worker_of, filesystems))
    used = {id(worker): worker for worker in workers if worker.is_used}
    return sorted(map(_record_of, used.values()), key=lambda found: (found.plugin, found.instance))


def _record_of(worker: Worker) -> WorkerRecord:
    calls, in_flight = worker.calls()
    # The first child of its watcher, which adopts what the plugin starts. Both numbers are as this
    # process sees them.
    watcher = worker.watcher
    pid = next(iter(children(watcher)), 0) if watcher else 0
    return WorkerRecord(
        worker.plugin,
        worker.instance,
        pid,
        memory_use(pid).touched if pid else 0,
        calls,
        in_flight,
        worker.restarts,
        plain(redacted(worker.last_fault), MOST_OF_A_MESSAGE),
        worker.limits,
    )


def _missing(first: WorkerOffer, offer: WorkerOffer) -> str:
    missing = ", ".join(repr(scheme) for scheme in first.schemes if scheme not in offer.schemes)
    changes = [note.message for note in offer.finding.notes if note not in first.finding.notes]
    return redacted(": ".join([f"does not serve {missing} any more", *changes[:1]]))


def _described(ending: WorkerEnding) -> str:
    last_output = redacted(ending.last_output).strip().splitlines()  # before a part of it is taken
    last = f'; it wrote "{last_output[-1]:.300}"' if last_output else ""
    return f"{ending.words}{_frames(ending)}{last}"


def _frames(ending: WorkerEnding) -> str:
    """Return the innermost frames; a file is named, without its folder, where it differs."""
    shown, last = [], ""
    for frame in ending.frames[:_MOST_FRAMES_SHOWN]:
        file, _, place = frame.rpartition(" ")
        shown.append(place if file == last else f"{os.path.basename(file)} {place}")
        last = file
    return f" in {' < '.join(shown)}" if shown else ""


# -- what native/core/worker_upcalls.h declares ---------------------------------------------------


def _interrupted(_kind: object, error: BaseException, _traceback: object) -> None:
    keep_interrupt(error)


def _put(text: str, place: Any, room: int) -> None:
    encoded = text.encode("utf-8", "surrogateescape")[: room - 1]
    ffi.memmove(place, encoded + b"\0", len(encoded) + 1)


@ffi.def_extern(error=-1, onerror=_interrupted)
def mtf_upcall_worker_start(number: int, run: int, text: Any, room: int) -> int:
    """Start a process; see the header."""
    worker = _workers.get(number)
    if worker is None:
        _put("the worker is closed", text, room)
        return -1
    try:
        return worker.start(run)
    except ModularTFError as error:
        _put(error.message, text, room)
    except Exception as error:  # noqa: BLE001  (C calls this)
        _put(f"{type(error).__name__}: {error}", text, room)
    return -1


@ffi.def_extern(onerror=_interrupted)
def mtf_upcall_worker_ended(number: int, run: int, is_late: int, text: Any, room: int) -> None:
    """Report how a process ended; see the header."""
    worker = _workers.get(number)
    if worker is not None:
        with suppress(OSError):
            _put(worker.ended(run, is_late=bool(is_late)), text, room)


@ffi.def_extern(error=1, onerror=_interrupted)
def mtf_upcall_worker_signals() -> int:
    """Return whether a handler raised, now or before: Python runs them before it comes here."""
    return int(is_interrupted())


def handles_signals() -> bool:
    """Return whether this is called by a signal handler in the middle of a call to a worker."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    while frame is not None and frame.f_code is not mtf_upcall_worker_signals.__code__:
        frame = frame.f_back
    return frame is not None
