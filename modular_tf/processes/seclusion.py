"""Seclusion: namespaces of Linux in which plugins have process numbers of their own.

In a PID namespace a plugin can name no process of the machine, so it can neither look at one nor
end or stop one, and the kernel ends everything in it with its first process. Root may make one. An
ordinary user may make one in a user namespace, in which user and group keep their numbers and no
right is gained; but files of other users have no known owner and group there. A process with only
some rights of root is not secluded: it would lose those, and so see less than the application.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, NoReturn

from modular_tf.native.c_library import checked, die_with_parent
from modular_tf.native.ffi import ffi, lib
from modular_tf.processes.descendants import stat_of, status_of

if TYPE_CHECKING:
    from collections.abc import Callable

SECLUDED, OPEN = b"s", b"o"
"""What a process that forks watchers says of them when it is ready."""

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_NOSUID_NODEV_NOEXEC, _MS_REC_SLAVE = 0x2 | 0x4 | 0x8, 0x4000 | 0x80000
_CAP_SYS_ADMIN = 21
_POLL_EVERY_S = 0.0005
_CAPABILITY_VERSION_3 = 0x20080522


def can_be_secluded() -> bool:
    """Try whether `run_secluded` works here, and would show drivers what they see outside."""
    # Containers mount something below /proc to hide devices from drivers.
    with open("/proc/self/mountinfo", "rb") as mounts:
        points = [line.split()[4] for line in mounts]
    if any(p.startswith(b"/proc/") and p != b"/proc/sys/fs/binfmt_misc" for p in points):
        return False
    pid = os.fork()
    if pid == 0:
        run_secluded(lambda: None)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def run_secluded(work: Callable[[], None]) -> NoReturn:
    """Do some work in a process with numbers of its own, wait for its end, and end.

    The kernel lets no process in there end the first one, so the work is done by the second: if
    that one is ended or stopped, all end. To be called in a process that was forked for this; its
    exit status is 0 if the work was done, 1 if not or where it cannot be secluded.
    """
    try:
        rights = _capabilities()
        enter_namespaces()
        pid = os.fork()
        if pid != 0:
            os._exit(0 if os.waitpid(pid, 0)[1] == 0 else 1)
        die_with_parent(0)  # whose number means nothing here
        show_own_processes()
        second = os.fork()
        if second == 0:
            if rights == 0:
                _give_up_rights()
            work()
            os._exit(0)
        ended = 0
        while ended != second:
            ended, status = os.waitpid(-1, os.WUNTRACED)
        os._exit(0 if status == 0 else 1)
    except BaseException:  # noqa: BLE001  (the exit status reports it)
        os._exit(1)


def run_as_first(work: Callable[[], None], report: Callable[[int], object]) -> NoReturn:
    """Do some work in the first process with numbers of its own, and end this one at once.

    The kernel lets nobody in there end or stop the first process. Its parent is the reaper of this
    one (`adopt_orphans`), with which it ends. To be called in a process that was forked for this;
    `report` is given the number of the first process, as it is here.
    """
    try:
        rights = _capabilities()
        enter_namespaces()
        here, reaper = os.getpid(), os.getppid()
        pid = os.fork()
        if pid == 0:
            # The kernel would end this process with the one that has forked it.
            while (parent := _parent_outside()) == here:
                time.sleep(_POLL_EVERY_S)
            die_with_parent(0)  # whose number means nothing here
            if parent != reaper or _parent_outside() != reaper:
                os._exit(1)
            show_own_processes()
            if rights == 0:
                _give_up_rights()
            work()
        else:
            report(pid)
    finally:
        os._exit(0)


def _parent_outside() -> int:
    """Return the number of the parent in the namespace for which /proc was mounted."""
    return int(stat_of("self")[1])


def enter_namespaces() -> None:
    """Have process numbers of their own for children, and mounts for this process.

    Raises an OSError where the kernel forbids it, or this process would lose rights.
    """
    rights = _capabilities()
    if not rights >> _CAP_SYS_ADMIN & 1:
        # A user namespace gives all rights over those that are made from now on.
        user, group = os.geteuid(), os.getegid()
        if rights != 0 or (os.getuid(), os.getgid()) != (user, group):
            raise PermissionError(errno.EPERM, "some rights would be lost")
        checked("unshare", lib.unshare(_CLONE_NEWUSER))
        for name, text in (
            ("uid_map", b"%d %d 1" % (user, user)),  # numbers as before
            ("setgroups", b"deny"),  # without which the next one is refused
            ("gid_map", b"%d %d 1" % (group, group)),
        ):
            with open(f"/proc/self/{name}", "wb") as file:
                file.write(text)
    checked("unshare", lib.unshare(_CLONE_NEWNS | _CLONE_NEWPID))


def _give_up_rights() -> None:
    """Have no capability, as outside the user namespace."""
    header = ffi.new("uint32_t[2]", [_CAPABILITY_VERSION_3, 0])
    none = ffi.new("uint32_t[6]")
    checked("capset", lib.capset(header, none))


def show_own_processes() -> None:
    """Let /proc show the processes of this PID namespace; called by its first process."""
    # Nothing that is mounted here shall be seen outside; what is mounted there, shall be here.
    checked("mount", lib.mount(b"none", b"/", ffi.NULL, _MS_REC_SLAVE, ffi.NULL))
    flags = _MS_NOSUID_NODEV_NOEXEC
    checked("mount", lib.mount(b"proc", b"/proc", b"proc", flags, ffi.NULL))


def _capabilities() -> int:
    """Return the capabilities that take effect, as bits."""
    return int(status_of("self")["CapEff"], 16)
