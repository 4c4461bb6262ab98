"""Processes as the kernel has them in /proc; finding and ending all that one has started.

The process has to be the reaper of its descendants (`adopt_orphans`): one that loses its parent
becomes a child of this process. A child's number is given to no other process before the child is
waited for, which only this module does; so no other process is ever killed.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import suppress
from typing import Annotated, NamedTuple

from modular_tf.codec import between, row
from modular_tf.native.c_library import prctl

_PR_SET_CHILD_SUBREAPER = 36
_KILL_TIMEOUT_S = 5.0  # one may hang in a driver
_POLL_EVERY_S = 0.0005


def stat_of(process: int | str) -> list[bytes]:
    """Return state, parent and so on of a process or thread, as its file `stat` has them.

    Nothing is returned where it is gone. `process` is its folder in /proc, as `self`.
    """
    with suppress(OSError), open(f"/proc/{process}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()  # the name before may hold anything
    return []


def status_of(process: int | str) -> dict[str, str]:
    """Return the lines of its file `status` by name; `OSError` where it is gone."""
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as status:
        lines = (line.partition(":") for line in status)
        return {name: " ".join(text.split()) for name, _, text in lines}


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs; once, for the life of the process."""
    with suppress(OSError):  # a kernel that has none
        prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process, also those that nobody has waited for."""
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return _children_by_parent(pid)  # the kernel was built without these files
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as listed:
                found += map(int, listed.read().split())
    return found


def _children_by_parent(pid: int) -> list[int]:
    numbers = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [number for number in numbers if stat_of(number)[1:2] == [b"%d" % pid]]


def living_descendants(pid: int, most: int) -> list[int]:
    """Return the descendants that run; once more than `most` are found, no others."""
    found: list[int] = []
    seen: set[int] = set()
    waiting = children(pid)
    while waiting and len(found) <= most:
        child = waiting.pop()
        if child in seen:
            continue
        seen.add(child)
        if runs(child):
            found.append(child)
        waiting += children(child)
        if not runs(child):  # it may just have ended, and its children have come to `pid`
            waiting += children(pid)
    return found


def runs(pid: int | str) -> bool:
    """Return whether a process or thread is there and has not ended."""
    return stat_of(pid)[:1] not in ([], [b"Z"], [b"X"])


def signal_child(child: int, number: int) -> None:
    """Send a signal to a child of this process, unless it has taken another user's rights."""
    with suppress(PermissionError):
        os.kill(child, number)


def _kill_children() -> None:
    for child in children(os.getpid()):
        signal_child(child, signal.SIGKILL)


class Ended(NamedTuple):
    """How a child of this process ended."""

    status: int | None = None  # exit status, negative for a signal; None where it would not end
    peak: int = 0  # the most memory that it had touched at a time, in bytes


def end_all(leader: int = 0) -> Ended:
    """Kill all descendants, wait for them, and return how one child ended."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    ended = Ended()
    while time.monotonic() < deadline:
        _kill_children()
        try:
            while (found := os.wait4(-1, os.WNOHANG))[0]:
                if found[0] == leader:
                    status = os.waitstatus_to_exitcode(found[1])
                    ended = Ended(status, found[2].ru_maxrss << 10)
        except ChildProcessError:
            break
        time.sleep(_POLL_EVERY_S)
    return ended


# -- memory ----------------------------------------------------------------------------------------

_PAGE = os.sysconf("SC_PAGE_SIZE")
_RESIDENT, _SHARED, _DATA = 1, 2, 5  # fields of statm, in pages
_THREADS = 17  # of `stat_of`
_STACK_WITHOUT_LIMIT = 2 << 20  # what glibc gives a thread then
_SIGNAL_STACK = 64 << 10  # as native/watched has it


_Bytes = Annotated[int, between(-(1 << 62), 1 << 62)]


@row
class MemoryUse(NamedTuple):
    """How much memory a process has touched, and how much it has allocated, in bytes.

    Neither address space that is reserved without access (PROT_NONE), as drivers of large devices
    do, nor the pages of files count, nor the stacks of threads, of which a pool may have one per
    processor.
    """

    touched: _Bytes  # its own memory that exists
    allocated: _Bytes  # private and writable, touched or not
    files: _Bytes  # of files, and shared with others

    def beyond(self, other: MemoryUse) -> int:
        """Return how much more it is, by what differs most, without files."""
        return max(self.touched - other.touched, self.allocated - other.allocated)


def memory_use(pid: int | str) -> MemoryUse:
    """Return what a process (`self` for this one) has now; nothing where it has ended."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            fields = [int(field) * _PAGE for field in statm.read().split()]
        threads = int(stat_of(pid)[_THREADS])
    except (OSError, IndexError):
        return MemoryUse(0, 0, 0)
    # The C library keeps the stack of a thread that ended, as of the one that opened a plugin.
    stacks = max(threads - 1, 1) * stack_size() + (threads - 1) * _SIGNAL_STACK
    files = fields[_SHARED]
    return MemoryUse(fields[_RESIDENT] - files, fields[_DATA] - stacks, files)


def stack_size() -> int:
    """Return how much address space a thread's stack takes, unless its maker says otherwise."""
    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _STACK_WITHOUT_LIMIT if limit == resource.RLIM_INFINITY else limit
