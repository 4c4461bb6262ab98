"""Process numbers of one's own, where this process has the right to them: Linux's namespaces.

In a PID namespace a plugin can name no process of the machine, so it can neither look at one nor
end one, and the kernel ends everything in it with its first process. The right is root's. An
ordinary user could have it in a user namespace only, in which drivers would find other owners and
groups than the application finds; their plugins can harm no more than the user's own processes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.native.ffi import ffi
from modular_tf.native.library import Library
from modular_tf.native.parent_death import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_NOSUID_NODEV_NOEXEC, _MS_REC_SLAVE = 0x2 | 0x4 | 0x8, 0x4000 | 0x80000
_CAP_SYS_ADMIN = 21


def can_be_secluded() -> bool:
    """Try whether `run_secluded` works here, and would show drivers what they see outside."""
    if not _has_capability() or _proc_is_covered():
        return False
    pid = os.fork()
    if pid == 0:
        run_secluded(lambda: None)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def run_secluded(work: Callable[[], None]) -> NoReturn:
    """Do some work in a process with numbers of its own, wait for its end, and end.

    The kernel lets nobody in there end the first process, so the work is done by the second: who
    ends or stops it, ends all. To be called in a process that was forked for this; its exit status
    is 0 if the work was done, 1 if not or where it cannot be secluded.
    """
    try:
        _call("unshare", "int (*)(int)", _CLONE_NEWNS | _CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            _as_first(work)
        os._exit(0 if os.waitpid(pid, 0)[1] == 0 else 1)
    except BaseException:  # noqa: BLE001  (the exit status tells)
        os._exit(1)


def _as_first(work: Callable[[], None]) -> NoReturn:
    try:
        die_with_parent(0)  # whose number means nothing here
        # Nothing that is mounted here shall be seen outside; what is mounted there, shall be here.
        _mount(b"none", b"/", ffi.NULL, _MS_REC_SLAVE)
        _mount(b"proc", b"/proc", b"proc", _MS_NOSUID_NODEV_NOEXEC)
        second = os.fork()
        if second == 0:
            work()
            os._exit(0)
        ended = 0
        while ended != second:
            ended, status = os.waitpid(-1, os.WUNTRACED)
        os._exit(0 if status == 0 else 1)
    except BaseException:  # noqa: BLE001  (the exit status tells)
        os._exit(1)


def _mount(source: bytes, target: bytes, kind: Any, flags: int) -> None:
    form = "int (*)(char const *, char const *, char const *, unsigned long, void const *)"
    texts = [ffi.new("char[]", text) for text in (source, target)]
    shown = ffi.NULL if kind is ffi.NULL else ffi.new("char[]", kind)
    _call("mount", form, *texts, shown, flags, ffi.NULL)


def _call(name: str, form: str, *arguments: Any) -> None:
    libc = Library.find("libc.so.6")
    address = libc.symbol(name) if libc is not None else None
    if address is None or ffi.cast(form, address)(*arguments) != 0:
        raise OSError(ffi.errno, name)


def _proc_is_covered() -> bool:
    """Tell whether something is mounted below /proc, as containers hide devices from drivers."""
    with open("/proc/self/mountinfo", "rb") as mounts:
        points = [line.split()[4] for line in mounts]
    return any(p.startswith(b"/proc/") and p != b"/proc/sys/fs/binfmt_misc" for p in points)


def _has_capability() -> bool:
    with suppress(OSError, ValueError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False
