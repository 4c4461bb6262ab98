"""The child process: takes its limits on, tries one plugin, and ends."""

from __future__ import annotations

import errno
import os
import resource
import signal
from typing import TYPE_CHECKING, NoReturn

from modular_tf.first_contact.descriptors import REPORT, take_descriptors
from modular_tf.first_contact.fork_handlers import fork_handler_count, fork_once
from modular_tf.first_contact.journal import Journal
from modular_tf.first_contact.memory_use import memory_use, stack_size
from modular_tf.first_contact.process_limits import process_limits
from modular_tf.first_contact.process_state import ProcessState, changes, flush_output
from modular_tf.first_contact.rehearsal import Rehearsal
from modular_tf.first_contact.stopped_watchers import Watchers
from modular_tf.loading.origin_folder import remove_own_folders
from modular_tf.native.crash_report import report_crashes
from modular_tf.native.parent_death import die_with_parent
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import MEMORY_BOUNDED, PROCESS_STATE_KEPT

if TYPE_CHECKING:
    from modular_tf.first_contact.limits import Limits
    from modular_tf.first_contact.process_limits import ProcessLimits
    from modular_tf.first_contact.task import Task

_MIB = 1 << 20
_LARGEST_FILE = 1 << 30  # beyond the copies of the library itself
_MOST_DESCRIPTORS = 4099  # more than 4096, which a plugin may set: that would not show
_CPU_GRACE_S = 10
_THREADS_OF_A_PROCESSOR = 4
_MORE_TASKS = 512
_SHARED = frozenset({errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


def run(task: Task, limits: Limits, *, streams: tuple[int, int, int], parent: int) -> NoReturn:
    """Try a plugin and end the process; what it registered to run then does not run.

    Args:
        task: The plugin.
        limits: What it may take.
        streams: What become standard output, standard error, and the report.
        parent: The process that waits for this one, and whose end is this one's.
    """
    try:
        # By a signal that nobody else asks the kernel for: so it shows if a plugin asks for one.
        die_with_parent(parent, signal.SIGRTMAX)
        # A group of its own, in the session of the parent: in a session of its own the kernel
        # would ignore SIGTSTP, SIGTTIN and SIGTTOU, which stop an application.
        os.setpgid(0, 0)
        take_descriptors(streams)
        journal = Journal(REPORT, Watchers())
    except BaseException:  # noqa: BLE001  (nobody can be told; the parent sees it end)
        os._exit(1)
    try:
        taken = own = process_limits()
        _take_limits(task, limits)
        taken = process_limits()
        report_crashes(REPORT)
        _try(task, journal, own)
    except KeyboardInterrupt:  # nobody else is there to send it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:  # noqa: BLE001  (none of ours may count as the plugin's)
        is_scarce = _is_scarce(error) and process_limits() == taken
        journal.fail(f"{type(error).__name__}: {error}", is_scarce=is_scarce)
    os._exit(0)


def _is_scarce(error: BaseException) -> bool:
    """Tell whether something was missing that the whole machine shares."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in _SHARED


def _try(task: Task, journal: Journal, own: ProcessLimits) -> None:
    before = ProcessState.now()
    handlers = fork_handler_count()
    rehearsal = Rehearsal(task, journal)
    rehearsal.perform()
    remove_own_folders()  # this process ends without what Python does at its end
    flush_output()
    changed = list(changes(before, ProcessState.now(), own))
    if fork_handler_count() > handlers:
        text = "has functions called at each fork (pthread_atfork)"
        changed.append(Violation(PROCESS_STATE_KEPT, text))
        journal.enter("its functions at a fork")
        fork_once()
    told = [(found.rule_id, found.message) for found in (*rehearsal.faults, *changed)]
    outcome = {"finding": rehearsal.finding().as_dict(), "changes": told}
    journal.finish(outcome)


def _take_limits(task: Task, limits: Limits) -> None:
    processors = os.cpu_count() or 1
    # One byte is too little for a core dump, and keeps the kernel from piping it to a program,
    # which it does at 0.
    _lower(resource.RLIMIT_CORE, 1)
    _lower(resource.RLIMIT_NOFILE, _MOST_DESCRIPTORS)
    _lower(resource.RLIMIT_CPU, int(limits.seconds * processors) + _CPU_GRACE_S)
    copies = sum(os.path.getsize(path) for path in (task.file, *task.companions))
    _lower(resource.RLIMIT_FSIZE, copies + _LARGEST_FILE)
    if MEMORY_BOUNDED not in limits.accept:
        # For what is allocated faster than the watcher looks, which allows half as much.
        stacks = _THREADS_OF_A_PROCESSOR * processors * stack_size()
        own = memory_use("self").allocated
        _lower(resource.RLIMIT_DATA, own + 2 * limits.memory_mib * _MIB + stacks)
    if os.geteuid() != 0:  # it does not bind root, whose children are counted instead
        _lower(resource.RLIMIT_NPROC, _tasks_of_the_machine() + _MORE_TASKS)


def _lower(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def _tasks_of_the_machine() -> int:
    """Return how many threads there are, at least those of this user."""
    with open("/proc/loadavg", "rb") as load:
        return int(load.read().split()[3].partition(b"/")[2])
