"""Process-wide state, compared before and after a plugin ran: changes of it harm the application.

Facts have a name and a text; texts are only compared and shown.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.crash_report import signal_handlers
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import process_symbol
from modular_tf.processes.plain_text import plain
from modular_tf.processes.signal_names import signal_name
from modular_tf.rules import Violation
from modular_tf.rules import first_contact as rules
from modular_tf.rules.loading import WHOLE_ELF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.rules import Rule

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
_STREAMS = ("standard input", "standard output", "standard error")
_OF_STATUS = {  # the rule that a change breaks, and the message
    "Uid": (_HARMS, "changed the user of the process"),
    "Gid": (_HARMS, "changed the group of the process"),
    "Groups": (_HARMS, "changed the supplementary groups of the process"),
    "CapEff": (_HARMS, "changed the capabilities of the process"),
    "Seccomp": (_HARMS, "filters the system calls of the process (seccomp)"),
    "Seccomp_filters": (_HARMS, "added a filter of system calls (seccomp)"),
    "TracerPid": (_HARMS, HAS_TRACER),
    "Umask": (_WARNS, "changed the umask"),
}
_FACTS = {
    **_OF_STATUS,
    "namespace": (_HARMS, "moved the process to another namespace"),
    "root": (_HARMS, "changed the root directory"),
    "affinity": (_WARNS, "changed the processors that the process may use"),
    "parent's end": (_HARMS, "lets the process end with its parent (PR_SET_PDEATHSIG)"),
    "report": (_WARNS, "lets programs inherit descriptors that it did not open"),
    **{
        f"flags of {name}": (_WARNS, f"changed how {name} is opened (O_NONBLOCK and others)")
        for name in _STREAMS
    },
    **{
        name: (_WARNS, f"changed whether programs inherit {name} (close-on-exec)")
        for name in _STREAMS
    },
}
_SHOWN = frozenset(("Uid", "Gid", "Umask", "affinity"))  # with the texts before and after
_STATUS_LINE = re.compile(rf"^({'|'.join(_OF_STATUS)}):(.*)$".encode(), re.MULTILINE)
_PR_GET_PDEATHSIG = 2

# Signals whose handling Python sets at its start; and those without which waiting for children or
# ending the application fails.
_OF_PYTHON = frozenset({signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ})
_NEVER_IGNORED = frozenset({signal.SIGCHLD, signal.SIGTERM})
_DEFAULT, _IGNORED = 0, 1
_DONE_TO_HANDLER = {_DEFAULT: "set the default action for", _IGNORED: "ignores"}
_HANDLING_S = 0.05

# Other libraries fail where these are lowered.
_NEEDED_LIMITS = frozenset(
    f"RLIMIT_{name}" for name in ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")
)
_ARITHMETIC = {  # native/core/float_state.h
    1: "changed which floating-point exceptions end the process",
    2: "made the processor take denormal numbers for zero",
    4: "made the processor round otherwise",
}
_OF_PROGRAMS = frozenset(
    b"BASH_ENV ENV GCONV_PATH GLIBC_TUNABLES PATH PYTHONHOME PYTHONPATH PYTHONSTARTUP".split()
)
_LC_ALL = 6  # of glibc and musl alike

_OPEN_FILES, _WATCHES, _MAPPINGS = "descriptors", "inotify instances", "mappings of memory"
_WHOSE = {_OPEN_FILES: "the process", _WATCHES: "the user", _MAPPINGS: "the process"}
_FILES_OF_LIMITS = {
    _WATCHES: "/proc/sys/fs/inotify/max_user_instances",
    _MAPPINGS: "/proc/sys/vm/max_map_count",
}
_FEW, _HALF = 8, 2  # an eighth of what there is is a warning, half is refused

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
_BLOCKED = re.compile(rb"^SigBlk:\s*([0-9a-f]+)", re.MULTILINE)


class _Timer(NamedTuple):
    """A timer that is set, of setitimer(2) or timer_create(2), and the signal that it sends."""

    kind: str
    number: int
    signal: int
    is_handled: bool


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The state of the calling process and thread at one moment."""

    handlers: tuple[int, ...]
    blocked: frozenset[int]
    locale: bytes
    directory: str
    arithmetic: int
    limits: ProcessLimits
    facts: dict[str, str]
    timers: frozenset[_Timer]
    use: dict[str, int]
    unseen: tuple[str, ...]

    @classmethod
    def now(cls) -> ProcessState:
        """Return the present state; errors of what cannot be read are in `unseen`."""
        facts: dict[str, str] = {}
        timers: set[_Timer] = set()
        use: dict[str, int] = {}
        unseen: list[str] = []
        directory = "one that is gone"
        with suppress(OSError):
            directory = os.getcwd()
        reads: tuple[Callable[[], None], ...] = (
            lambda: facts.update(_status_facts()),
            lambda: facts.update(_namespace_facts()),
            lambda: facts.update(_asked_facts()),
            lambda: timers.update(_timers()),
            lambda: use.update(_use()),
        )
        for read in reads:
            try:
                read()
            except OSError as error:
                unseen.append(str(error))
        return cls(
            handlers=signal_handlers(),
            blocked=frozenset(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
            locale=_locale(),
            directory=directory,
            arithmetic=lib.mtf_undone_float_changes(),
            limits=process_limits(),
            facts=facts,
            timers=frozenset(timers),
            use=use,
            unseen=tuple(unseen),
        )


def changes(
    before: ProcessState,
    after: ProcessState,
    own: ProcessLimits,
    enter: Callable[[str], None] = lambda _: None,
) -> list[Violation]:
    """Return a violation for each change; the environment is compared with `os.environ`.

    Limits in messages are those of the application (`own`). `enter` is called with the name of what
    runs of the plugin's, before it does: handlers of signals.
    """
    found = [
        *_handler_changes(before, after, enter),
        *_limit_changes(own, before.limits, after.limits),
        *_fact_changes(before.facts, after.facts),
        *_timer_changes(before.timers, after.timers),
        *_use_changes(before.use, after.use, own),
    ]
    if after.locale != before.locale:
        was, now = (state.locale.decode("utf-8", "replace").split(";") for state in (before, after))
        changed = ", ".join(part for part in now if part not in was)
        found.append(Violation(rules.LOCALE_KEPT, f"changed the locale: {changed}"))
    if after.directory != before.directory:
        found.append(Violation(_WARNS, f"changed the working directory to {after.directory}"))
    for bit, done in _ARITHMETIC.items():
        if after.arithmetic & ~before.arithmetic & bit:
            found.append(Violation(_WARNS, f"{done}; that was undone"))
    known = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    found += _environment_changes(known, _environment())
    unseen = [what for what in after.unseen if what not in before.unseen]
    if unseen and all(change.rule != _HARMS for change in found):  # else the lost rights are why
        message = f"left the process unable to work: {unseen[0]}"
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


def _handler_changes(
    before: ProcessState, after: ProcessState, enter: Callable[[str], None]
) -> Iterator[Violation]:
    found: dict[tuple[Rule, str], list[str]] = {}
    for number, handler in enumerate(after.handlers):
        if handler == before.handlers[number]:
            continue
        harms = number in _NEVER_IGNORED and handler == _IGNORED
        if number in _OF_PYTHON:  # the default action of each ends the process
            harms = handler == _DEFAULT
        if number == signal.SIGINT and not harms:
            harms = handler == _IGNORED or not _interrupt_reaches_python(enter)
        broken = rules.SIGNAL_HANDLERS_KEPT if harms else _WARNS
        done = _DONE_TO_HANDLER.get(handler, "handles")
        found.setdefault((broken, done), []).append(signal_name(number))
    for (broken, done), names in found.items():
        yield Violation(broken, f"{done} {', '.join(names)}")
    if blocked := sorted(after.blocked - before.blocked):
        message = f"blocks {', '.join(map(signal_name, blocked))}"
        yield Violation(rules.SIGNAL_HANDLERS_KEPT, message)


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


# -- locale and environment, as the C library and so all libraries have them -----------------------


def _c_symbol(name: str, kind: str) -> Any:
    """Return a symbol of the C library, as all libraries of the process see it.

    The C library's own variable is another one where the executable has a copy: `environ`, in an
    executable that is not position-independent.
    """
    address = process_symbol(name)
    return None if address is None else ffi.cast(kind, address)


def _locale() -> bytes:
    """Return the locale of the C library; Python's `locale` module knows only Python's changes."""
    setlocale = _c_symbol("setlocale", "char *(*)(int, char *)")
    return b"" if setlocale is None else ffi.string(setlocale(_LC_ALL, ffi.NULL))


def _environment() -> dict[bytes, bytes]:
    """Return the variables of the C library, so with those that a plugin has set."""
    variables = _c_symbol("environ", "char ***")
    found: dict[bytes, bytes] = {}
    entries = ffi.NULL if variables is None else variables[0]
    index = 0
    while entries and entries[index]:
        name, _, value = ffi.string(entries[index]).partition(b"=")
        found.setdefault(name, value)
        index += 1
    return found


def _environment_changes(
    before: Mapping[bytes, bytes], after: Mapping[bytes, bytes]
) -> Iterator[Violation]:
    """Yield what a plugin did to the environment, which programs that are started later inherit."""
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


# -- limits, and the share of them that is used ----------------------------------------------------


def process_limits() -> ProcessLimits:
    """Return the limits of this process."""
    found = {}
    for name in dir(resource):
        if name.startswith("RLIMIT_"):
            soft, hard = resource.getrlimit(getattr(resource, name))
            found[name] = (
                float("inf") if soft == resource.RLIM_INFINITY else soft,
                float("inf") if hard == resource.RLIM_INFINITY else hard,
            )
    return found


def _limit_changes(
    own: ProcessLimits, taken: ProcessLimits, after: ProcessLimits
) -> Iterator[Violation]:
    """Yield the changes of limits; messages name those of `own`, none `taken` for the trial."""
    for name, (soft, hard) in after.items():
        if (soft, hard) == taken[name]:
            continue
        if hard < taken[name][1]:
            message = f"lowered how far {name} may be raised, to {_shown_limit(hard)}"
            yield Violation(_WARNS, message)
        own_soft, _ = own[name]
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
    before: Mapping[str, int], after: Mapping[str, int], own: ProcessLimits
) -> Iterator[Violation]:
    """Yield a violation for each resource of which a plugin keeps a large share."""
    limits = {_OPEN_FILES: own["RLIMIT_NOFILE"][0]}
    for name, path in _FILES_OF_LIMITS.items():
        with suppress(OSError, ValueError), open(path, "rb") as file:
            limits[name] = int(file.read())
    for name, limit in limits.items():
        kept = after.get(name, 0) - before.get(name, 0)
        if kept > 0 and kept * _FEW >= limit:
            message = f"keeps {kept} of the {int(limit)} {name} that {_WHOSE[name]} may have"
            yield Violation(_HARMS if kept * _HALF >= limit else _WARNS, message)


# -- facts that the kernel has ---------------------------------------------------------------------


def _status_facts() -> dict[str, str]:
    with open("/proc/self/status", "rb") as status:
        lines = _STATUS_LINE.findall(status.read())
    return {
        name.decode(): " ".join(text.decode("utf-8", "replace").split()) for name, text in lines
    }


def _namespace_facts() -> dict[str, str]:
    """Return the namespaces of the process, and those that its children will be in."""
    found = {}
    for name in sorted(os.listdir("/proc/self/ns")):
        found[f"namespace {name}"] = "none yet"
        with suppress(FileNotFoundError):  # of children, before the first is there
            found[f"namespace {name}"] = os.readlink(f"/proc/self/ns/{name}")
    return found


def _asked_facts() -> dict[str, str]:
    """Return the facts that system calls return, without opening a file."""
    root = os.stat("/")
    signal_at_end = ffi.new("int *")
    prctl = _c_symbol("prctl", "int (*)(int, unsigned long, ...)")
    prctl(_PR_GET_PDEATHSIG, int(ffi.cast("unsigned long", signal_at_end)))
    found = {
        "root": f"{root.st_dev} {root.st_ino}",
        "affinity": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "parent's end": str(signal_at_end[0]),
    }
    for fd, name in enumerate(_STREAMS):
        found[f"flags of {name}"] = hex(fcntl.fcntl(fd, fcntl.F_GETFL))
    for fd, name in enumerate((*_STREAMS, "report")):
        with suppress(OSError):  # nothing is open there
            found[name] = str(fcntl.fcntl(fd, fcntl.F_GETFD))
    return found


def _fact_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Violation]:
    """Yield a violation for each fact that is known at both times and has changed."""
    for name, was in before.items():
        now = after.get(name, was)
        if now == was:
            continue
        kind, _, namespace = (
            name.partition(" ") if name.startswith("namespace ") else (name, "", "")
        )
        broken, sentence = _FACTS[kind]
        if namespace:
            sentence += f" ({namespace})"
        elif name in _SHOWN:
            sentence += f" from {was} to {now}"
        yield Violation(broken, sentence)


# -- timers ----------------------------------------------------------------------------------------


def _timers() -> Iterator[_Timer]:
    """Yield the timers that are set."""
    handlers = signal_handlers()

    def survives(sent: int) -> bool:
        return handlers[sent] != _DEFAULT or sent in _BY_DEFAULT_IGNORED

    for kind, sent in _INTERVAL_TIMERS.items():
        if signal.getitimer(kind)[0]:
            yield _Timer("interval", kind, sent, survives(sent))
    with open("/proc/self/timers", encoding="utf-8", errors="replace") as listed:
        posix = _POSIX_TIMER.findall(listed.read())
    for number, sent, to, receiver in posix:
        is_awaited = to == "tid" and _awaits(receiver, int(sent))
        yield _Timer("posix", int(number), int(sent), is_awaited or survives(int(sent)))


def _awaits(thread: str, number: int) -> bool:
    """Return whether a thread blocks a signal or waits for it: then the signal ends nothing."""
    if number == _OF_THREADS:
        return True
    with suppress(OSError):
        folder = f"/proc/self/task/{thread}"
        with open(f"{folder}/status", "rb") as status, open(f"{folder}/wchan", "rb") as place:
            blocked = _BLOCKED.search(status.read())
            is_waiting = place.read().startswith(b"do_sigtimedwait")
        return is_waiting or (blocked is not None and bool(int(blocked[1], 16) >> number - 1 & 1))
    return False


def _timer_changes(before: frozenset[_Timer], after: frozenset[_Timer]) -> Iterator[Violation]:
    for timer in sorted(after - before):
        what = f"left a timer running that sends {signal_name(timer.signal)}"
        if timer.signal == _OF_THREADS:
            what = (
                "left a timer running that calls a function in a thread of its own (SIGEV_THREAD)"
            )
        if timer.is_handled:
            yield Violation(_WARNS, what)
        else:
            yield Violation(rules.NO_FATAL_TIMER, f"{what}, which ends the process")
