"""Process-wide state that the kernel keeps, and the violation that a change of it is.

A fact has a name and a text; texts are only compared and shown.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol
from modular_tf.native.shared_memory import shared_memory
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import PROCESS_STATE_KEPT, RIGHTS_KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.rules import Rule

_HARMS, _WARNS = RIGHTS_KEPT, PROCESS_STATE_KEPT
HAS_TRACER = "has the process traced (ptrace)"


class Change(NamedTuple):
    """The violation that a changed fact is.

    Attributes:
        broken: The rule that a change breaks.
        sentence: The message.
        is_shown: Whether the message has the texts before and after.
    """

    broken: Rule
    sentence: str
    is_shown: bool = False


_STATUS = {
    "Uid": Change(_HARMS, "changed the user of the process", is_shown=True),
    "Gid": Change(_HARMS, "changed the group of the process", is_shown=True),
    "Groups": Change(_HARMS, "changed the supplementary groups of the process"),
    "CapPrm": Change(_HARMS, "changed the capabilities of the process"),
    "CapEff": Change(_HARMS, "changed the capabilities that take effect"),
    "CapInh": Change(_WARNS, "changed the capabilities that programs inherit"),
    "CapBnd": Change(_WARNS, "changed the capabilities that programs may gain"),
    "CapAmb": Change(_WARNS, "changed the capabilities that programs keep"),
    "NoNewPrivs": Change(_WARNS, "gave up all privileges that programs bring (no_new_privs)"),
    "Seccomp": Change(_HARMS, "filters the system calls of the process (seccomp)"),
    "Seccomp_filters": Change(_HARMS, "added a filter of system calls (seccomp)"),
    "TracerPid": Change(_HARMS, HAS_TRACER),
    "Umask": Change(_WARNS, "changed the umask", is_shown=True),
    "Name": Change(_WARNS, "changed the name of the process", is_shown=True),
}
_LOCKED = {"locked": Change(_WARNS, "locks all memory of the process (mlockall)")}
_NAMESPACES = {
    name: Change(_HARMS, f"moved the process to another namespace ({name})")
    for name in ("cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time",
                 "time_for_children", "user", "uts")
}  # fmt: skip
_FILES = {
    "oom_score_adj": Change(_WARNS, "changed which process is ended for want of memory"),
    "personality": Change(_WARNS, "changed the personality of the process (personality(2))"),
}
_SCHEDULING = {
    "root": Change(_HARMS, "changed the root directory"),
    "nice": Change(_WARNS, "changed the nice value", is_shown=True),
    "policy": Change(_WARNS, "changed the scheduling policy"),
    "affinity": Change(_WARNS, "changed the processors that the process may use", is_shown=True),
}
_SIGNAL_STACK = {"signal stack": Change(_WARNS, "changed the stack of signal handlers")}
_STREAMS = {
    name: Change(_WARNS, f"changed how {name} is opened (O_NONBLOCK and others)")
    for name in ("standard input", "standard output", "standard error")
}
_INHERITANCE = {  # of descriptors from 0 on: the streams, and the report
    **{
        f"{name}, inherited": Change(
            _WARNS, f"changed whether programs inherit {name} (close-on-exec)"
        )
        for name in _STREAMS
    },
    "report": Change(_WARNS, "lets programs inherit descriptors that it did not open"),
}
_ASKED = {  # by prctl(2)
    "parent's end": Change(_HARMS, "lets the process end with its parent (PR_SET_PDEATHSIG)"),
    "subreaper": Change(_WARNS, "made the process the parent of orphans (PR_SET_CHILD_SUBREAPER)"),
    "dumpable": Change(_WARNS, "changed who may look at the process (PR_SET_DUMPABLE)"),
    "keepcaps": Change(_WARNS, "changed whether capabilities are kept (PR_SET_KEEPCAPS)"),
    "securebits": Change(_WARNS, "changed what the superuser's number means (PR_SET_SECUREBITS)"),
}
_WRITES_ANSWER = {"parent's end": 2, "subreaper": 37}
_RETURNS_ANSWER = {"dumpable": 3, "keepcaps": 7, "securebits": 27}
_LOCKED_SIZE, _NONE = "VmLck", "0 kB"
_STATUS_LINE = re.compile(rf"^({'|'.join(_STATUS)}|{_LOCKED_SIZE}):(.*)$".encode(), re.MULTILINE)
_FACTS = {
    **_STATUS, **_LOCKED, **_NAMESPACES, **_FILES, **_SCHEDULING, **_SIGNAL_STACK, **_STREAMS,
    **_INHERITANCE, **_ASKED,
}  # fmt: skip


def fact_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Violation]:
    """Yield a violation for each fact that is known at both times and has changed."""
    for name, (broken, sentence, is_shown) in _FACTS.items():
        was, now = before.get(name), after.get(name)
        if was is None or now is None or was == now:
            continue
        yield Violation(broken, f"{sentence} from {was} to {now}" if is_shown else sentence)


def status_facts() -> dict[str, str]:
    """Return the facts of `/proc/self/status`: users, rights, filters and locked memory."""
    with shared_memory(os.sysconf("SC_PAGE_SIZE")):  # is locked where all is from now on
        found = _status()
    locked = found.pop(_LOCKED_SIZE, _NONE)
    locks = locked != _NONE and (_status()[_LOCKED_SIZE] != locked or _stack_is_locked())
    return {**found, "locked": str(locks)}


def _status() -> dict[str, str]:
    with open("/proc/self/status", "rb") as status:
        lines = _STATUS_LINE.findall(status.read())
    return {
        name.decode(): " ".join(text.decode("utf-8", "replace").split()) for name, text in lines
    }


def _stack_is_locked() -> bool:
    with open("/proc/self/smaps", "rb") as maps:
        _, _, stack = maps.read().partition(b"[stack]")
    flags = stack.partition(b"VmFlags:")[2].partition(b"\n")[0]
    return b"lo" in flags.split()


def namespace_facts() -> dict[str, str]:
    """Return the namespaces of the process, and those that its children will be in."""
    found = {}
    for name in os.listdir("/proc/self/ns"):
        found[name] = "none yet"
        with suppress(FileNotFoundError):  # of children, before the first is there
            found[name] = os.readlink(f"/proc/self/ns/{name}")
    return found


def file_facts() -> dict[str, str]:
    """Return the contents of files of the process in /proc; older kernels may have fewer."""
    found = {}
    for name in _FILES:
        with suppress(FileNotFoundError), open(f"/proc/self/{name}", encoding="utf-8") as file:
            found[name] = file.read()
    return found


def asked_facts() -> dict[str, str]:
    """Return the facts that system calls return, without opening a file."""
    root = os.stat("/")
    return {
        "root": f"{root.st_dev} {root.st_ino}",
        "nice": str(os.getpriority(os.PRIO_PROCESS, 0)),
        "policy": str(os.sched_getscheduler(0)),
        "affinity": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "signal stack": _signal_stack(),
        **{name: hex(fcntl.fcntl(fd, fcntl.F_GETFL)) for fd, name in enumerate(_STREAMS)},
        **_inheritance(),
        **_controls(),
    }


def _inheritance() -> dict[str, str]:
    found = {}
    for fd, name in enumerate(_INHERITANCE):
        with suppress(OSError):  # nothing is open there
            found[name] = str(fcntl.fcntl(fd, fcntl.F_GETFD))
    return found


def _controls() -> dict[str, str]:
    prctl: Callable[..., int] = _function("prctl", "int (*)(int, unsigned long, ...)")
    found = {}
    for name, number in _WRITES_ANSWER.items():
        answer = ffi.new("int *")
        prctl(number, int(ffi.cast("unsigned long", answer)))
        found[name] = str(answer[0])
    for name, number in _RETURNS_ANSWER.items():
        found[name] = str(prctl(number, 0))
    return found


def _signal_stack() -> str:
    """Return address, flags and size of the stack that this thread's signal handlers run on."""
    sigaltstack: Callable[..., int] = _function("sigaltstack", "int (*)(void *, void *)")
    found = ffi.new("uintptr_t[3]")  # address, flags, size: sigaltstack(2)
    sigaltstack(ffi.NULL, found)
    return " ".join(map(str, found))


def _function(name: str, kind: str) -> Callable[..., int]:
    function: Callable[..., int] = ffi.cast(kind, process_symbol(name) or 0)
    return function
