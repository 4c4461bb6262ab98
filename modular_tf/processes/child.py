"""What a process does in which a plugin runs: a child of a watcher, or the application."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.threads import awaited_work
from modular_tf.native.c_library import die_with_parent
from modular_tf.native.ffi import lib
from modular_tf.processes.ending import MUTE_STATUS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPORT = 3
"""The descriptor of the report, the first after the standard streams."""
_STDOUT, _STDERR = 1, 2
_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}


def become_child(ends: Sequence[int], parent: int, *, keep: int | None = None) -> int:
    """Keep the standard streams, the report and one more descriptor, and end with the watcher.

    The first three descriptors become standard output, standard error and the report. Returns the
    number of the last one, which is the next free one where there is none.
    """
    # By a signal that nobody else asks the kernel for: so it shows if a plugin asks for one.
    die_with_parent(parent, signal.SIGRTMAX)
    # A group of its own, in the session of the parent: in a session of its own the kernel would
    # ignore SIGTSTP, SIGTTIN and SIGTTOU, which stop an application.
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = [] if keep is None else [keep]
    first_of_others = REPORT + 1 + len(kept)
    above = [fcntl.fcntl(fd, fcntl.F_DUPFD, first_of_others) for fd in (nothing, *ends, *kept)]
    for fd, source in enumerate(above):
        os.dup2(source, fd)
    os.set_inheritable(REPORT, False)  # noqa: FBT003  (it has no name)
    os.closerange(first_of_others, os.sysconf("SC_OPEN_MAX"))
    return REPORT + 1


def dump_no_core() -> None:
    """Have the kernel write no core dump of this process."""
    # One byte is too little for a dump, and keeps the kernel from piping it to a program, which it
    # does at 0.
    lower_limit(resource.RLIMIT_CORE, 1)


def lower_limit(kind: int, limit: int) -> None:
    """Set a limit of this process (`resource.RLIMIT_...`), for good; never above what it may be."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def flush_output() -> None:
    """Write out what plugins have printed and standard output of the C library still holds.

    It is not written where another thread holds the stream, which may be for ever.
    """
    lib.mtf_flush_output()


def close_streams() -> None:
    """Write out what all streams of the C library hold, as exit() does at the end of a process.

    Unlike `fflush(NULL)` it waits for no thread that holds one, unless exit() does too: glibc 2.43
    waits in both, glibc 2.36 in neither.
    """
    lib.fcloseall()


@contextmanager
def output_to_standard_error() -> Iterator[None]:
    """Send what this process writes to standard output to standard error for a time.

    The descriptor is the whole process's. So nothing is changed where another thread might write
    there meanwhile, and where one of the descriptors is closed.
    """
    with ExitStack() as restored:
        with suppress(OSError):
            work = awaited_work()  # whose thread that waits writes nothing
            if len(os.listdir("/proc/self/task")) == (1 if work is None else 2):
                flush_output()  # what the application has printed stays its own
                kept = [os.dup(_STDOUT)]
                restored.callback(_restore, kept)
                if work is not None:
                    work.when_left(partial(_restore, kept))
                os.dup2(_STDERR, _STDOUT)
        yield


def _restore(kept: list[int]) -> None:
    """Give standard output back, unless that was done."""
    with suppress(IndexError):
        descriptor = kept.pop()
        try:
            flush_output()
        finally:  # also where it is interrupted
            os.dup2(descriptor, _STDOUT)
            os.close(descriptor)


class Report:
    """Writes the report to the watcher, one JSON object a line. Used by one thread.

    It has a descriptor of its own since plugins may write to standard output. They may close any
    descriptor; so nothing is written to what a plugin has opened under the number of the report's.
    """

    def __init__(self, descriptor: int = REPORT) -> None:
        self._descriptor = descriptor
        self._own = {fd: _identity(fd) for fd in (descriptor, *_STREAMS)}

    def write(self, entry: dict[str, Any]) -> None:
        """Write an entry; the process ends where the report is closed or something else."""
        if self._is_lost(self._descriptor):
            os._exit(MUTE_STATUS)
        left = json.dumps(entry).encode() + b"\n"
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:  # the plugin has shut the socket down
            os._exit(MUTE_STATUS)

    def lost_streams(self) -> str:
        """Return the names of the streams that are closed or something else, "" for none."""
        return " and ".join(name for fd, name in _STREAMS.items() if self._is_lost(fd))

    def _is_lost(self, fd: int) -> bool:
        return _identity(fd) != self._own[fd]


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
