"""What workers do now, as one process tells another."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.isolation.rights import ALL
from modular_tf.native.ffi import ffi, lib
from modular_tf.processes.checked_values import fields_of, list_of, number_in, typed
from modular_tf.processes.descendants import children
from modular_tf.processes.memory_use import memory_use
from modular_tf.processes.plain_text import MOST_OF_A_MESSAGE, plain
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from modular_tf.isolation.worker import Worker

_MOST = (1 << 63) - 1
_CREDENTIALS = struct.Struct("=3i")  # process, user, group


class WorkerRecord(NamedTuple):
    """A worker as it is at one moment.

    Attributes:
        plugin: The name of its plugin.
        instance: The instance that it serves; "" for the plugin itself.
        pid: The number of its process, as the application sees it; 0 for none now.
        memory_bytes: What the process has touched, without files.
        calls: How many calls were made of it.
        in_flight: How many of them are under way.
        restarts: How many of its processes ended while they were used.
        last_fault: How the last of these ended; "" for none.
        limits: What it is restricted to.
    """

    plugin: str
    instance: str
    pid: int
    memory_bytes: int
    calls: int
    in_flight: int
    restarts: int
    last_fault: str
    limits: tuple[str, ...]

    @classmethod
    def from_dict(cls, value: Any) -> WorkerRecord:
        """Read what another process tells.

        Raises:
            ValueError: It has another shape.
        """
        given = fields_of(value, frozenset(cls._fields))

        def text(name: str) -> str:
            return plain(typed(given[name], str), MOST_OF_A_MESSAGE)

        def number(name: str) -> int:
            return number_in(given[name], 0, _MOST)

        return cls(
            text("plugin"),
            text("instance"),
            number("pid"),
            number("memory_bytes"),
            number("calls"),
            number("in_flight"),
            number("restarts"),
            text("last_fault"),
            tuple(map(plain, list_of(given["limits"], str, len(ALL)))),
        )


def record_of(worker: Worker) -> WorkerRecord:
    """Return what a worker does now. [any thread]"""
    state = ffi.new("mtf_worker_state *")
    lib.mtf_worker_look(worker.handle, state)
    pid = worker_number(worker.watcher)
    return WorkerRecord(
        worker.plugin,
        worker.instance,
        pid,
        memory_use(pid).touched if pid else 0,
        int(state.calls),
        int(state.in_flight),
        worker.restarts,
        plain(redacted(worker.last_fault), MOST_OF_A_MESSAGE),
        worker.limits,
    )


def worker_number(watcher: int) -> int:
    """Return the number of the worker of a watcher; 0 where there is none.

    Both as this process sees them: they may have others for each other. A worker is the first child
    of its watcher, which adopts what the plugin starts.
    """
    return next(iter(children(watcher)), 0) if watcher else 0


def expect_credentials(connection: socket.socket) -> None:
    """Have the kernel say who sends what comes next on a socket."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def sender_of_next(connection: socket.socket, seconds: float) -> int:
    """Return the number of the process that sends what comes next, which stays to be read.

    Args:
        connection: A socket that was prepared by `expect_credentials`.
        seconds: How long to wait.

    Returns:
        Its number as this process sees it; 0 where nothing comes, or nobody can say.
    """
    connection.settimeout(seconds)
    try:
        room = socket.CMSG_SPACE(_CREDENTIALS.size)
        _, told, _, _ = connection.recvmsg(1, room, socket.MSG_PEEK)
    except OSError:
        return 0
    finally:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    kinds = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)
    found = (data for level, kind, data in told if (level, kind) == kinds)
    return next((_CREDENTIALS.unpack(data)[0] for data in found), 0)


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the numbers of the process, and of the user, at the other end of a socket."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(raw)
    return process, user


def is_own(connection: socket.socket) -> bool:
    """Return whether a process of this user is at the other end of a socket."""
    return peer_of(connection)[1] in (os.geteuid(), 0)
