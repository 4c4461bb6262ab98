"""The child process: sets its limits, tries one plugin, and ends."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, NoReturn

from modular_tf.codec import encode
from modular_tf.concurrency.threads import start_thread
from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError, ModularTFError
from modular_tf.first_contact.finding import MOST_NOTES, Finding, Offer, bounded, noted
from modular_tf.first_contact.process_state import (
    ProcessState,
    changes,
    child_changes,
    process_limits,
)
from modular_tf.first_contact.verdict import IN_ORDER, THREAD_END
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.opened_libraries import opened_since, unlinkable_neighbours
from modular_tf.native.crash_report import QUESTION, expect_exit, report_crashes
from modular_tf.native.device_calls import announce_calls
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import process_symbol, unmapped_count
from modular_tf.native.sanitizers import looks_for_leaks
from modular_tf.opening import OpenedPlugin
from modular_tf.processes.child import (
    REPORT,
    Report,
    become_child,
    dump_no_core,
    flush_output,
    lower_limit,
)
from modular_tf.processes.descendants import memory_use, runs, stack_size, stat_of, status_of
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import MEMORY_BOUNDED, NEIGHBOURS_LINKABLE
from modular_tf.rules.loading import WHOLE_ELF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.first_contact.finding import Limits
    from modular_tf.first_contact.process_state import ProcessLimits
    from modular_tf.loading.task import Task

_MIB = 1 << 20
_MOST_OF_NOTES = 1 << 20  # bytes of JSON: a quarter of the longest entry that the watcher takes
_LARGEST_FILE = 1 << 30  # beyond the copies of the library itself
_MOST_DESCRIPTORS = 4099  # not 4096: a plugin that sets that limit would go unnoticed
_CPU_GRACE_S = 10
_THREADS_OF_A_PROCESSOR = 4
_MORE_TASKS = 512
_POLL_EVERY_S = 0.0001
_LONG_STOP_S = 0.05
_WATCHERS = 3  # the watcher, the process that forked it, and the application
_SHARED = frozenset({errno.ENFILE, errno.ENOMEM, errno.EAGAIN})  # by the whole machine


def run(task: Task, limits: Limits, ends: Sequence[int], parent: int) -> NoReturn:
    """Try a plugin and end the process as an application does, but for Python's own end.

    The arguments `ends` and `parent` are those of `become_child`.
    """
    try:
        become_child(ends, parent)
        journal = Journal(Report(), is_watched=True)
    except BaseException:  # noqa: BLE001  (there is no report yet; the parent sees it end)
        os._exit(1)
    try:
        trial_limits = limits_before = process_limits()
        _take_limits(task, limits)
        trial_limits = process_limits()
        report_crashes(REPORT)
        _try(task, journal, limits_before)
        expect_exit(IN_ORDER)
        if not looks_for_leaks(os.environ):  # Python's leaks are no plugin's
            lib.exit(IN_ORDER)  # which runs the exit handlers and destructors of libraries
        os._exit(IN_ORDER)
    except KeyboardInterrupt:  # nobody else is there to send it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:  # noqa: BLE001  (a fault of the host must not count as the plugin's)
        ran_out = isinstance(error, MemoryError) or getattr(error, "errno", None) in _SHARED
        is_scarce = ran_out and process_limits() == trial_limits
        journal.fail(f"{type(error).__name__}: {error}", is_scarce=is_scarce)
    os._exit(0)


def _try(task: Task, journal: Journal, limits_before: ProcessLimits) -> None:
    before = ProcessState.now()
    child = lib.mtf_start_ended_child()
    handlers = fork_handler_count()
    rehearsal = Rehearsal(task, journal)
    finding = rehearsal.perform()
    bound_files.mirrors.remove()  # this process ends without what Python does at its end
    flush_output()
    after = ProcessState.now()
    changed = [*child_changes(child), *changes(before, after, limits_before, journal.enter)]
    if fork_handler_count() > handlers:
        journal.enter("its functions at a fork")
        _fork_once()
    found = [(each.rule_id, each.message) for each in (*rehearsal.faults, *changed)]
    # What the whole process has is found in the opening thread as well.
    journal.finish({"finding": encode(finding), "changes": list(dict.fromkeys(found))})


def _take_limits(task: Task, limits: Limits) -> None:
    processors = os.cpu_count() or 1
    dump_no_core()
    lower_limit(resource.RLIMIT_NOFILE, _MOST_DESCRIPTORS)
    lower_limit(resource.RLIMIT_CPU, int(limits.seconds * processors) + _CPU_GRACE_S)
    copies = sum(os.path.getsize(path) for path in (task.file, *task.companions))
    lower_limit(resource.RLIMIT_FSIZE, copies + _LARGEST_FILE)
    if MEMORY_BOUNDED not in limits.accept:
        # For what is allocated faster than the watcher looks, which allows half as much.
        stacks = _THREADS_OF_A_PROCESSOR * processors * stack_size()
        own = memory_use("self").allocated
        lower_limit(resource.RLIMIT_DATA, own + 2 * limits.memory_mib * _MIB + stacks)
    if os.geteuid() != 0:  # it does not bind root, whose children are counted instead
        with open("/proc/loadavg", "rb") as load:
            threads = int(load.read().split()[3].partition(b"/")[2])  # of this user at least
        lower_limit(resource.RLIMIT_NPROC, threads + _MORE_TASKS)


def fork_handler_count() -> int:
    """Return how many functions were registered to run at each fork.

    The system does not list them. It is 0 where the library that counts them is not preloaded.
    """
    address = process_symbol("mtf_fork_handler_count")
    return 0 if address is None else int(ffi.cast("unsigned (*)(void)", address)())


def _fork_once() -> None:
    """Fork a child that ends at once, and wait for it, so that functions called at a fork run here.

    A child that a signal ended ends this process by the same signal.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        os.kill(os.getpid(), -status)
    elif status > 0:
        os._exit(status)


class Rehearsal:
    """Opens one plugin, holds all that it offers at once as the application does, and closes it.

    It is opened in a thread that has ended before anything else is done, as in an application
    (`concurrency.threads.Work`): a pointer to data of that thread leads nowhere then.

    What an application decides of devices (`memory`, `copy_streams`) is no part of it: a plugin
    learns of that with the first stream or memory, and none is made here. A library whose
    relocations are damaged is not mapped at all.
    """

    def __init__(self, task: Task, journal: Journal) -> None:
        self.faults: list[Violation] = []  # damage, and what the opening thread changed of its own
        self._task = task
        self._journal = journal
        self._opened = OpenedPlugin(task, before=self._enter)
        self._main_thread = threading.get_ident()
        self._calls: SimpleQueue[str] = SimpleQueue()  # of the opening thread
        self._entered: SimpleQueue[None] = SimpleQueue()
        self._error: BaseException | None = None  # of the host's own code in that thread

    def perform(self) -> Finding:
        """Open the plugin, query what it has, close it, and return what was found."""
        task, opened = self._task, self._opened
        for file in (*task.companions, task.file):
            if (stray := stray_relocation(file)) is not None:
                self.faults.append(Violation(WHOLE_ELF, f"{file} is damaged: {stray}"))
                return Finding(offer=Offer())
        unmapped = unmapped_count()
        announce_calls(self._enter)
        self._open_in_thread()
        if opened.platform is not None:
            with suppress(ModularTFError):
                self._query_devices(opened.platform)
        offer = Offer.of(opened)
        opened.close()
        libraries: list[SeenFile] = []
        is_complete = True
        if opened.library is not None:
            libraries, is_complete = opened_since(opened.library)
        if unmapped_count() != unmapped:  # it is unknown which library that was
            is_complete = False
        described = [it for it in libraries if _is_describable([it])]
        if not _is_describable(described):
            described = []
        is_complete = is_complete and len(described) == len(libraries)
        return bounded_finding(offer, opened.notes, described, is_complete=is_complete)

    def _open_in_thread(self) -> None:
        """Open the plugin in a thread, and wait for the end of that."""
        thread = threading.Thread(target=self._open, daemon=True)
        start_thread(thread)
        signal.pthread_sigmask(signal.SIG_BLOCK, (QUESTION,))  # the thread that opens answers it
        call = ""
        while call != THREAD_END:
            call = self._calls.get()
            self._journal.enter(call)
            self._entered.put(None)
        # `Thread.join` does not wait for the destructors of the thread's own data.
        while runs(f"self/task/{thread.native_id}"):
            time.sleep(_POLL_EVERY_S)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (QUESTION,))
        if self._error is not None:
            raise self._error

    def _open(self) -> None:
        try:
            before = ProcessState.now(of_thread=True)
            try:
                self._opened.open()
            except ModularTFError as error:  # a shortage: this process is the plugin's
                self._opened.notes.append(Violation.of_error(error, "load"))
            self.faults += changes(before, ProcessState.now(of_thread=True), {})
        except BaseException as error:  # noqa: BLE001  (raised again by the main thread)
            self._error = error
        finally:
            self._enter(THREAD_END)

    def _enter(self, call: str) -> None:
        """Report a call that is about to be made, in the main thread.

        That handles first what signals the call before has sent: Python does it in no other.
        """
        if threading.get_ident() == self._main_thread:
            self._journal.enter(call)
        else:
            self._calls.put(call)
            self._entered.get()

    def _query_devices(self, platform: DevicePlatform) -> None:
        from modular_tf.device.memory.allocator_stats import memory_usage  # noqa: PLC0415  (here only)

        count = platform.device_count()
        if not count:
            task = self._task
            self._opened.note("init", unlinkable_neighbours(task.file, task.companions))
        for ordinal in range(count):
            self._journal.device = ordinal
            with suppress(ModularTFError):  # a device that fails does not hide the others
                platform.device_details(ordinal)
                executor = platform.executor(ordinal)
                self._journal.enter("device_memory_usage")
                memory_usage(executor)
        self._journal.device = None


def bounded_finding(
    offer: Offer,
    notes: Iterable[Violation],
    opened: Iterable[SeenFile] = (),
    *,
    is_complete: bool = True,
) -> Finding:
    """Return the finding, with at most as many notes as the watcher accepts, errors first then."""
    all_notes = [noted(note) for note in notes]
    kept: list[Violation] = []
    left = _MOST_OF_NOTES
    too_many = len(all_notes) > MOST_NOTES or sum(map(_size, all_notes)) > left
    for note in sorted(all_notes, key=lambda note: too_many and not note.is_error):
        left -= _size(note)
        if left < 0 or len(kept) == MOST_NOTES:
            break
        kept.append(note)
    # The files beside the plugin may change, and the finding does not depend on them.
    storable = is_complete and all(note.rule != NEIGHBOURS_LINKABLE for note in kept)
    return Finding(None, offer, tuple(kept), tuple(opened), storable)


def _is_describable(files: list[SeenFile]) -> bool:
    """Return whether the watcher accepts these files as what was opened."""
    try:
        bounded(tuple(files))
    except ValueError:
        return False
    return True


def _size(note: Violation) -> int:
    return len(json.dumps(encode(note)))


# -- the report ------------------------------------------------------------------------------------


class Journal:
    """Writes each call to the report before it is made. Used by one thread.

    The entries are `{"enters": CALL, "memory": USE}`, then `{"stops": 1}`, `{"lost": STREAM}`,
    `{"fault": TEXT, "scarce": 0|1}` or `{"finished": OUTCOME, "memory": USE}` as the last; those of
    the native core are described in `native/core/process_end.h`.

    `is_watched` means that the parent is a watcher. It is continued, with the processes above it,
    if a plugin has stopped all processes of its user: where the plugin is not secluded, only its
    own process can do that.
    """

    def __init__(self, report: Report, *, is_watched: bool = False) -> None:
        self.device: int | None = None  # ordinal of the device that is under trial
        self._report = report
        self._watchers = _ancestors() if is_watched else []

    def enter(self, call: str) -> None:
        """Report the next call; end the process if the last one damaged what reporting needs."""
        self._check_process()
        of_device = "" if self.device is None else f" of device {self.device}"
        self._report.write({"enters": f"{call}{of_device}", "memory": memory_use("self")})

    def finish(self, outcome: Mapping[str, object]) -> None:
        """Report that all calls returned, and the outcome."""
        self._check_process()
        self._report.write({"finished": outcome, "memory": memory_use("self")})

    def fail(self, text: str, *, is_scarce: bool) -> None:
        """Report that the host's own code failed; `is_scarce` if a shared resource ran out."""
        self._check_process()
        self._report.write({"fault": text, "scarce": int(is_scarce)})

    def _check_process(self) -> None:
        if self._watchers and _is_stopped(self._watchers[0]):
            time.sleep(_LONG_STOP_S)
            if _is_stopped(self._watchers[0]):  # else all of them were stopped for a while
                for pid in self._watchers:  # nearest first: a parent kills a stopped child
                    with suppress(OSError):
                        os.kill(pid, signal.SIGCONT)
                self._report.write({"stops": 1})
                os._exit(0)
        if lost := self._report.lost_streams():
            self._report.write({"lost": lost})
            os._exit(0)


def _ancestors() -> list[int]:
    """Return the processes above this one up to the application, the nearest first."""
    found = [os.getppid()]
    while len(found) < _WATCHERS and (stat := stat_of(found[-1])):
        found.append(int(stat[1]))
    return [pid for pid in found if pid > 0]  # 0 is outside of the PID namespace


def _is_stopped(pid: int) -> bool:
    """Return whether a process is stopped, or is about to be."""
    with suppress(OSError):
        status = status_of(pid)
        pending = int(status["ShdPnd"], 16)
        return status["State"].startswith("T") or bool(pending >> (signal.SIGSTOP - 1) & 1)
    return False


# -- damaged libraries -----------------------------------------------------------------------------

# Address and size of the tables that have addends: the general one, and that of the functions.
_TABLES = ((7, 8), (23, 2))
_DT_PLTREL, _DT_RELA = 20, 7
_WORDS_OF_ENTRY = 3  # offset, kind and symbol, addend


def stray_relocation(path: str) -> str | None:
    """Return a message on a relocation that lies outside of the library, None for none.

    The dynamic linker writes to each address that they name. Outside of the library that may be
    memory of another one, depending on the layout of the process: a damaged file that survives its
    trial may corrupt the application unnoticed.
    """
    with suppress(ElfError), ElfFile(path) as elf:  # loading reports a file that cannot be read
        start, end = elf.image.extent
        try:
            for target in _targets(elf):
                if not start <= target < end:
                    return f"a relocation at {target:#x} lies outside of it"
        except ElfError as error:
            return error.message
    return None


def _targets(elf: ElfFile) -> Iterator[int]:
    """Yield for each table the lowest and the highest address that is written to."""
    tags = {tag: value for _, tag, value in elf.dynamic.entries}  # the last counts, as in ld.so
    for address_tag, size_tag in _TABLES:
        size = tags.get(size_tag, 0) // 24 * 24
        is_of_functions = address_tag != _DT_RELA
        if size and (not is_of_functions or tags.get(_DT_PLTREL) == _DT_RELA):
            table = elf.image.read_at(tags.get(address_tag, 0), size, "the relocation table")
            targets = memoryview(table).cast("Q")[::_WORDS_OF_ENTRY]
            yield from (min(targets), max(targets))
