"""A check whether a file is open for writing in any process."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import threading

from modular_tf.concurrency.owned_file import open_owned

__all__ = ["is_open_for_writing"]

_F_SETOWN_EX = 15  # not in every Python's fcntl
_F_OWNER_TID = 0
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def is_open_for_writing(path: str) -> bool | None:
    """Return whether a file is open for writing, by a read lease (fcntl(2)). [any thread]

    A lease on a file is refused while anybody has it open for writing or maps it so. It is for the
    file's owner to take, and on local file systems only.

    Returns:
        None if that is unknown.
    """
    try:
        with open_owned(path, _OPEN_FLAGS) as file:
            return _lease_is_refused(file.fileno())
    except (OSError, ValueError):
        return None


def _lease_is_refused(descriptor: int) -> bool | None:
    # If a process opens the file in that instant, the kernel sends a signal, by default a fatal one
    # to this process. Here it goes to this thread, which blocks it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
    try:
        owner = struct.pack("ii", _F_OWNER_TID, threading.get_native_id())
        fcntl.fcntl(descriptor, _F_SETOWN_EX, owner)
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    else:
        return False
    finally:
        if signal.SIGURG not in blocked:
            signal.sigtimedwait([signal.SIGURG], 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
