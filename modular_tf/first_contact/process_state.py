"""The state of a process, compared before and after a plugin ran: changes harm the application.

Each row of a table says how a value is read, and which rule a change of it breaks. What each thread
has of its own is compared in the thread that opens the plugin too.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.crash_report import signal_handlers
from modular_tf.native.ffi import ffi, lib
from modular_tf.processes.descendants import status_of
from modular_tf.processes.ending import plain, signal_name
from modular_tf.rules import Violation
from modular_tf.rules import first_contact as rules
from modular_tf.rules.loading import WHOLE_ELF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.rules import Rule

    _Compare = Callable[[Any, Any, "_Trial"], Iterator[Violation]]

_HARMS, _WARNS = rules.RIGHTS_KEPT, rules.PROCESS_STATE_KEPT
RULES_OF_CHANGES = frozenset(
    {
        WHOLE_ELF,
        rules.SIGNAL_HANDLERS_KEPT,
        rules.LOCALE_KEPT,
        rules.PROCESS_STATE_KEPT,
        rules.RIGHTS_KEPT,
        rules.NO_FATAL_TIMER,
        rules.PROCESS_USABLE,
    }
)
"""The rules that the child checks besides those of loading; its watcher checks the others."""

ProcessLimits = dict[str, tuple[float, float]]
"""The soft and the hard limit, by the names that setrlimit(2) has for them; infinity for none."""

HAS_TRACER = "has the process traced (ptrace)"


class _Trial(NamedTuple):
    limits_before: ProcessLimits  # the application's, before the trial lowered some
    enter: Callable[[str], None]  # called before code of the plugin runs, with its name


class _Row(NamedTuple):
    read: Callable[[], Any]
    compare: _Compare
    is_of_thread: bool = False


class ProcessState(NamedTuple):
    """The state of the calling process and thread at one moment."""

    values: dict[str, Any]  # by the names of the rows
    unreadable: tuple[str, ...]  # errors of the rows that could not be read

    @classmethod
    def now(cls, *, of_thread: bool = False) -> ProcessState:
        """Return the present state, or only what the calling thread has of its own."""
        values, unreadable = {}, []
        for name, row in _ROWS.items():
            if row.is_of_thread or not of_thread:
                try:
                    values[name] = row.read()
                except OSError as error:
                    unreadable.append(str(error))
        return cls(values, tuple(unreadable))


def changes(
    before: ProcessState,
    after: ProcessState,
    limits_before: ProcessLimits,
    enter: Callable[[str], None] = lambda _: None,
) -> list[Violation]:
    """Return a violation for each change.

    Limits in messages are those of the application (`limits_before`). `enter` is called with the
    name of code of the plugin, before that runs: handlers of signals.
    """
    trial = _Trial(limits_before, enter)
    found = [
        violation
        for name, row in _ROWS.items()
        if name in before.values and name in after.values
        for violation in row.compare(before.values[name], after.values[name], trial)
    ]
    unreadable = [error for error in after.unreadable if error not in before.unreadable]
    if unreadable and all(change.rule != _HARMS for change in found):  # else lost rights are why
        message = f"left the process unable to work: {unreadable[0]}"
        found.append(Violation(rules.PROCESS_USABLE, message))
    return found


def child_changes(child: int) -> Iterator[Violation]:
    """Yield a violation if the status of a child that ended before the trial (-1: none) is gone."""
    try:
        if child > 0:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        message = "took the exit status of a child process that it had not started"
        yield Violation(_HARMS, f"{message} (it waits for any)")


# -- signals ---------------------------------------------------------------------------------------

# Signals whose handling Python sets at its start; and those without which waiting for children or
# ending the application fails.
_OF_PYTHON = frozenset({signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ})
_NEVER_IGNORED = frozenset({signal.SIGCHLD, signal.SIGTERM})
_DEFAULT, _IGNORED = 0, 1
_DONE_TO_HANDLER = {_DEFAULT: "set the default action for", _IGNORED: "ignores"}
_HANDLING_S = 0.05


def _handler_changes(
    before: tuple[int, ...], after: tuple[int, ...], trial: _Trial
) -> Iterator[Violation]:
    found: dict[tuple[Rule, str], list[str]] = {}
    for number, handler in enumerate(after):
        if handler == before[number]:
            continue
        harms = number in _NEVER_IGNORED and handler == _IGNORED
        if number in _OF_PYTHON:  # the default action of each ends the process
            harms = handler == _DEFAULT
        if number == signal.SIGINT and not harms:
            harms = handler == _IGNORED or not _interrupt_reaches_python(trial.enter)
        broken = rules.SIGNAL_HANDLERS_KEPT if harms else _WARNS
        done = _DONE_TO_HANDLER.get(handler, "handles")
        found.setdefault((broken, done), []).append(signal_name(number))
    for (broken, done), names in found.items():
        yield Violation(broken, f"{done} {', '.join(names)}")


def _interrupt_reaches_python(enter: Callable[[str], None]) -> bool:
    """Interrupt this process; some handlers call the one that was installed before (LLVM's do)."""
    enter("its handler of SIGINT")
    try:
        signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + _HANDLING_S
        while time.monotonic() < deadline:
            time.sleep(_HANDLING_S / 10)
    except KeyboardInterrupt:
        return True
    return False


def _blocked() -> frozenset[int]:
    return frozenset(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))


def _blocked_changes(
    before: frozenset[int], after: frozenset[int], _: _Trial
) -> Iterator[Violation]:
    if blocked := sorted(after - before):
        message = f"blocks {', '.join(map(signal_name, blocked))}"
        yield Violation(rules.SIGNAL_HANDLERS_KEPT, message)


# -- limits, and the share of them that is used ----------------------------------------------------

# Other libraries fail where these are lowered.
_NEEDED_LIMITS = frozenset(
    f"RLIMIT_{name}" for name in ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")
)
_OPEN_FILES, _WATCHES, _MAPPINGS = "descriptors", "inotify instances", "mappings of memory"
_WHOSE = {_OPEN_FILES: "the process", _WATCHES: "the user", _MAPPINGS: "the process"}
_FILES_OF_LIMITS = {
    _WATCHES: "/proc/sys/fs/inotify/max_user_instances",
    _MAPPINGS: "/proc/sys/vm/max_map_count",
}
_FEW, _HALF = 8, 2  # an eighth of what there is is a warning, half is refused


def process_limits() -> ProcessLimits:
    """Return the limits of this process."""
    limits = {
        name: resource.getrlimit(getattr(resource, name))
        for name in dir(resource)
        if name.startswith("RLIMIT_")
    }
    return {name: (_limit(soft), _limit(hard)) for name, (soft, hard) in limits.items()}


def _limit(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _limit_changes(
    before: ProcessLimits, after: ProcessLimits, trial: _Trial
) -> Iterator[Violation]:
    for name, (soft, hard) in after.items():
        if (soft, hard) == before[name]:
            continue
        if hard < before[name][1]:
            message = f"lowered how far {name} may be raised, to {_shown_limit(hard)}"
            yield Violation(_WARNS, message)
        own_soft, _ = trial.limits_before[name]
        if soft != own_soft:
            how = "lowered" if soft < own_soft else "raised"
            harms = name in _NEEDED_LIMITS and how == "lowered"
            message = f"{how} {name} from {_shown_limit(own_soft)} to {_shown_limit(soft)}"
            yield Violation(_HARMS if harms else _WARNS, message)


def _shown_limit(limit: float) -> str:
    return "unlimited" if limit == float("inf") else str(int(limit))


def _use() -> dict[str, int]:
    open_files = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the directory's own
            open_files.append(os.readlink(f"/proc/self/fd/{name}"))
    with open("/proc/self/maps", "rb") as maps:
        mappings = sum(1 for _ in maps)
    watches = open_files.count("anon_inode:inotify")
    return {_OPEN_FILES: len(open_files), _WATCHES: watches, _MAPPINGS: mappings}


def _use_changes(
    before: Mapping[str, int], after: Mapping[str, int], trial: _Trial
) -> Iterator[Violation]:
    """Yield a violation for each resource of which a plugin keeps a large share."""
    limits = {_OPEN_FILES: trial.limits_before["RLIMIT_NOFILE"][0]}
    for name, path in _FILES_OF_LIMITS.items():
        with suppress(OSError, ValueError), open(path, "rb") as file:
            limits[name] = int(file.read())
    for name, limit in limits.items():
        kept = after[name] - before[name]
        if kept > 0 and kept * _FEW >= limit:
            message = f"keeps {kept} of the {int(limit)} {name} that {_WHOSE[name]} may have"
            yield Violation(_HARMS if kept * _HALF >= limit else _WARNS, message)


# -- facts: a name and a text ----------------------------------------------------------------------

_STREAMS = ("standard input", "standard output", "standard error")
_INHERITS = "changed whether programs inherit {} (close-on-exec)"
_OF_STATUS = {  # of /proc/PID/status
    "Uid": (_HARMS, "changed the user of the process from {} to {}"),
    "Gid": (_HARMS, "changed the group of the process from {} to {}"),
    "Groups": (_HARMS, "changed the supplementary groups of the process"),
    "CapEff": (_HARMS, "changed the capabilities of the process"),
    "Seccomp": (_HARMS, "filters the system calls of the process (seccomp)"),
    "Seccomp_filters": (_HARMS, "added a filter of system calls (seccomp)"),
    "TracerPid": (_HARMS, HAS_TRACER),
    "Umask": (_WARNS, "changed the umask from {} to {}"),
}
_FACTS = {
    **_OF_STATUS,
    "namespace": (_HARMS, "moved the process to another namespace ({name})"),
    "root": (_HARMS, "changed the root directory"),
    "processors": (_WARNS, "changed the processors that the process may use from {} to {}"),
    "end of the parent": (_HARMS, "lets the process end with its parent (PR_SET_PDEATHSIG)"),
    "directory": (_WARNS, "changed the working directory to {1}"),
    "report": (_WARNS, "lets programs inherit descriptors that it did not open"),
    **{name: (_WARNS, _INHERITS.format(name)) for name in _STREAMS},
    **{
        f"flags of {name}": (_WARNS, f"changed how {name} is opened (O_NONBLOCK and others)")
        for name in _STREAMS
    },
}
_PR_GET_PDEATHSIG = 2


def _status() -> dict[str, str]:
    return {name: text for name, text in status_of("thread-self").items() if name in _OF_STATUS}


def _namespaces() -> dict[str, str]:
    """Return the namespaces of the thread, and those that its children will be in."""
    found = {}
    for name in sorted(os.listdir("/proc/thread-self/ns")):
        found[f"namespace {name}"] = "none yet"
        with suppress(FileNotFoundError):  # of children, before the first is there
            found[f"namespace {name}"] = os.readlink(f"/proc/thread-self/ns/{name}")
    return found


def _other_facts() -> dict[str, str]:
    """Return the facts that system calls return, without opening a file."""
    root = os.stat("/")
    signal_at_end = ffi.new("int *")
    lib.prctl(_PR_GET_PDEATHSIG, ffi.cast("unsigned long", signal_at_end))
    found = {
        "root": f"{root.st_dev} {root.st_ino}",
        "processors": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "end of the parent": str(signal_at_end[0]),
        "directory": "one that is gone",
    }
    with suppress(OSError):
        found["directory"] = os.getcwd()
    for fd, name in enumerate(_STREAMS):
        found[f"flags of {name}"] = hex(fcntl.fcntl(fd, fcntl.F_GETFL))
    for fd, name in enumerate((*_STREAMS, "report")):
        with suppress(OSError):  # nothing is open there
            found[name] = str(fcntl.fcntl(fd, fcntl.F_GETFD))
    return found


def _fact_changes(
    before: Mapping[str, str], after: Mapping[str, str], _: _Trial
) -> Iterator[Violation]:
    """Report the changes of facts that are known at both times."""
    for fact, was in before.items():
        if (now := after.get(fact, was)) != was:
            name = fact.removeprefix("namespace ")
            rule, sentence = _FACTS[fact if name == fact else "namespace"]
            yield Violation(rule, sentence.format(was, now, name=name))


# -- timers ----------------------------------------------------------------------------------------

_INTERVAL_TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
    signal.ITIMER_PROF: signal.SIGPROF,
}
# Of timer_create(2), but for those that send nothing.
_POSIX_TIMER = re.compile(
    r"^ID: (\d+)\nsignal: (\d+)/.*\nnotify: signal/(pid|tid)\.(\d+)$", re.MULTILINE
)
_OF_THREADS = 32  # by which the C library wakes the thread that calls a timer's function
_BY_DEFAULT_IGNORED = frozenset(
    {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE, signal.SIGXFSZ}
)


class _Timer(NamedTuple):
    """A timer that is set, of setitimer(2) or timer_create(2), and the signal that it sends."""

    kind: str
    number: int
    signal: int
    is_handled: bool


def _timers() -> frozenset[_Timer]:
    handlers = signal_handlers()

    def survives(sent: int) -> bool:
        return handlers[sent] != _DEFAULT or sent in _BY_DEFAULT_IGNORED

    found = {
        _Timer("interval", kind, sent, survives(sent))
        for kind, sent in _INTERVAL_TIMERS.items()
        if signal.getitimer(kind)[0]
    }
    with open("/proc/self/timers", encoding="utf-8", errors="replace") as listed:
        posix = _POSIX_TIMER.findall(listed.read())
    for number, sent, to, receiver in posix:
        is_awaited = to == "tid" and _awaits(receiver, int(sent))
        found.add(_Timer("posix", int(number), int(sent), is_awaited or survives(int(sent))))
    return frozenset(found)


def _awaits(thread: str, number: int) -> bool:
    """Return whether a thread blocks a signal or waits for it: then the signal ends nothing."""
    if number == _OF_THREADS:
        return True
    with suppress(OSError):
        blocked = int(status_of(f"self/task/{thread}").get("SigBlk", "0"), 16)
        with open(f"/proc/self/task/{thread}/wchan", "rb") as place:
            return bool(blocked >> number - 1 & 1) or place.read().startswith(b"do_sigtimedwait")
    return False


def _timer_changes(
    before: frozenset[_Timer], after: frozenset[_Timer], _: _Trial
) -> Iterator[Violation]:
    for timer in sorted(after - before):
        does = f"sends {signal_name(timer.signal)}"
        if timer.signal == _OF_THREADS:
            does = "calls a function in a thread of its own (SIGEV_THREAD)"
        message = f"left a timer running that {does}"
        if timer.is_handled:
            yield Violation(_WARNS, message)
        else:
            yield Violation(rules.NO_FATAL_TIMER, f"{message}, which ends the process")


# -- locale, arithmetic and environment, as the C library and so all libraries have them -----------

_LC_ALL = 6  # of glibc and musl alike
_ARITHMETIC = {  # native/core/float_state.h
    1: "changed which floating-point exceptions end the process",
    2: "made the processor take denormal numbers for zero",
    4: "made the processor round otherwise",
}
_OF_PROGRAMS = frozenset(
    b"BASH_ENV ENV GCONV_PATH GLIBC_TUNABLES PATH PYTHONHOME PYTHONPATH PYTHONSTARTUP".split()
)


def _locale() -> bytes:
    """Return the locale of the C library; Python's `locale` module knows only Python's changes."""
    return ffi.string(lib.setlocale(_LC_ALL, ffi.NULL))


def _locale_changes(before: bytes, after: bytes, _: _Trial) -> Iterator[Violation]:
    if after != before:
        was, now = (locale.decode("utf-8", "replace").split(";") for locale in (before, after))
        changed = ", ".join(part for part in now if part not in was)
        yield Violation(rules.LOCALE_KEPT, f"changed the locale: {changed}")


def _arithmetic_changes(before: int, after: int, _: _Trial) -> Iterator[Violation]:
    for bit, done in _ARITHMETIC.items():
        if after & ~before & bit:
            yield Violation(_WARNS, f"{done}; that was undone")


def _environment() -> dict[bytes, bytes]:
    """Return the variables of the C library, so with those that a plugin has set."""
    found: dict[bytes, bytes] = {}
    entries = lib.environ
    index = 0
    while entries and entries[index]:
        name, _, value = ffi.string(entries[index]).partition(b"=")
        found.setdefault(name, value)
        index += 1
    return found


def _environment_changes(
    _: object, after: Mapping[bytes, bytes], __: _Trial
) -> Iterator[Violation]:
    """Yield what a plugin did to the environment, which programs that are started later inherit.

    What the host itself sets for a plugin meanwhile is in `os.environ`, so that is compared.
    """
    before = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    names = sorted(before.keys() | after.keys())
    changed = [name for name in names if before.get(name) != after.get(name)]
    of_programs = [name for name in changed if name.startswith(b"LD_") or name in _OF_PROGRAMS]
    others = [name for name in changed if name not in of_programs]
    if others:
        listed = ", ".join(name.decode("utf-8", "replace") for name in others)
        yield Violation(_WARNS, f"changed environment variables: {listed}")
    if of_programs:
        listed = ", ".join(_shown_variable(name, after.get(name)) for name in of_programs)
        message = "changed what programs that are started from now on load or run"
        yield Violation(_WARNS, f"{message}: {listed}")


def _shown_variable(name: bytes, value: bytes | None) -> str:
    shown = name.decode("utf-8", "replace")
    return f"{shown} is gone" if value is None else f"{shown}={plain(os.fsdecode(value))!r}"


# -- the table -------------------------------------------------------------------------------------

_ROWS = {
    "handlers": _Row(signal_handlers, _handler_changes),
    "blocked signals": _Row(_blocked, _blocked_changes, is_of_thread=True),
    "limits": _Row(process_limits, _limit_changes),
    "status": _Row(_status, _fact_changes, is_of_thread=True),
    "namespaces": _Row(_namespaces, _fact_changes, is_of_thread=True),
    "other facts": _Row(_other_facts, _fact_changes, is_of_thread=True),
    "timers": _Row(_timers, _timer_changes),
    "use": _Row(_use, _use_changes),
    "locale": _Row(_locale, _locale_changes),
    "arithmetic": _Row(lib.mtf_undone_float_changes, _arithmetic_changes),
    "environment": _Row(_environment, _environment_changes),
}
