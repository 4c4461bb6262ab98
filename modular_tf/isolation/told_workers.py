"""How one process learns of the workers of others: each application answers on a socket.

The socket has a name in the kernel (an abstract one), under the user's number: nothing lies on a
disk, and it is gone with its process. Only processes of the same user get an answer.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import ResourceExhaustedError
from modular_tf.isolation.worker_records import WorkerRecord, is_own, peer_of
from modular_tf.processes.checked_values import fields_of, listed, typed
from modular_tf.processes.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PREFIX = "modular_tf/workers/"
_MOST_APPLICATIONS, _MOST_WORKERS, _MOST_BYTES = 256, 1024, 1 << 20
_PATIENCE_S = 2.0
_REST_S = 0.1  # after an answer that could not be given
_FIELDS = frozenset({"program", "workers"})


class Application(NamedTuple):
    """A process with workers.

    Attributes:
        pid: Its number.
        program: Its name.
        workers: Its workers.
    """

    pid: int
    program: str
    workers: tuple[WorkerRecord, ...]


class _Teller:
    """Answers for this process, from the first call of `start` on."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._socket: socket.socket | None = None

    def start(self, records: Callable[[], list[WorkerRecord]]) -> None:
        with self._lock:
            if self._socket is not None:
                return
            # Without it the workers are not listed elsewhere, and serve; the next one tries again.
            with suppress(OSError, ResourceExhaustedError):
                self._socket = self._started(records)

    @staticmethod
    def _started(records: Callable[[], list[WorkerRecord]]) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(f"\0{_prefix()}{secrets.token_hex(8)}")
            made.listen(8)
            answer = threading.Thread(
                target=_answer, args=(made, records), name="modular_tf-workers", daemon=True
            )
            start_thread(answer)
        except BaseException:
            made.close()
            raise
        return made

    def end(self) -> None:
        """Answer no longer; the process ends."""
        made = self._socket
        if made is not None:
            with suppress(OSError):  # it is not listening
                made.shutdown(socket.SHUT_RDWR)  # which wakes the thread
            made.close()

    def forget(self) -> None:
        """Leave the socket to the parent, in a forked child."""
        made, self._socket = self._socket, None
        if made is not None:
            made.close()


_teller = _Teller()
atexit.register(_teller.end)
os.register_at_fork(after_in_child=_teller.forget)


def tell_others(records: Callable[[], list[WorkerRecord]]) -> None:
    """Answer other processes of this user from now on. [any thread]

    Args:
        records: Returns what this process's workers do now.
    """
    _teller.start(records)


def _answer(listener: socket.socket, records: Callable[[], list[WorkerRecord]]) -> None:
    while listener.fileno() >= 0:
        try:
            connection, _ = listener.accept()
        except OSError:
            time.sleep(_REST_S)
            continue
        with connection, suppress(Exception):  # whoever asked gets nothing, and others an answer
            connection.settimeout(_PATIENCE_S)
            if is_own(connection):
                rows = [record._asdict() for record in records()[:_MOST_WORKERS]]
                told = {"program": _program(), "workers": rows}
                connection.sendall(json.dumps(told).encode())


def _prefix() -> str:
    return f"{_PREFIX}{os.geteuid()}/"


def _program() -> str:
    with suppress(OSError), open("/proc/self/comm", encoding="utf-8", errors="replace") as name:
        return name.read().strip()
    return ""


def applications() -> list[Application]:
    """Return the processes of this user that have workers now, with these, by number."""
    found = {application.pid: application for application in _asked()}
    return [found[pid] for pid in sorted(found) if found[pid].workers]


def _asked() -> Iterator[Application]:
    for name in _names():
        with suppress(OSError, ValueError, RecursionError):  # it has ended, or is none of ours
            yield _ask(name)


def _names() -> list[str]:
    """Return the names of the sockets that answer."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as sockets:
        words = (line.split() for line in sockets)
        names = {row[-1][1:] for row in words if row and row[-1].startswith(f"@{_prefix()}")}
    return sorted(names)[:_MOST_APPLICATIONS]


def _ask(name: str) -> Application:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(f"\0{name}")
        if not is_own(connection):
            raise ValueError("another user's")
        pid, _ = peer_of(connection)
        told = _received(connection)
    return _application(pid, json.loads(told))


def _received(connection: socket.socket) -> bytes:
    deadline = time.monotonic() + _PATIENCE_S
    told = b""
    while (part := connection.recv(1 << 16)) and len(told) <= _MOST_BYTES:
        told += part
        if time.monotonic() > deadline:
            raise TimeoutError
    return told


def _application(pid: int, value: Any) -> Application:
    given = fields_of(value, _FIELDS)
    workers = map(WorkerRecord.from_dict, listed(given["workers"], _MOST_WORKERS))
    return Application(pid, plain(typed(given["program"], str)), tuple(workers))
