"""Marks of plugins that are being loaded, for later processes if this one ends.

Not everything can be tried in a process of its own first, and a trial that cannot be secluded may
end this process too. So a small file names what begins to run, and is removed when that returns. A
file whose process is gone names the culprit.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.discovery.boot_id import boot_id
from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.user_directories import state_directory
from modular_tf.first_contact.finding import Incident
from modular_tf.loading.task import WITNESSED
from modular_tf.rules import Violation
from modular_tf.rules.kept_state import LOADING_SURVIVED
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service.kept.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

_SUFFIX = ".mark"
_TRYING = "trying "
_MOST_BYTES = 64 * 1024
_TEXTS = ("plugin", "path", "what", "sha256", "machine", "namespace", "boot", "start")
_FIELDS_TO_START = 20  # of /proc/PID/stat, after the command's name: proc_pid_stat(5)
_ENDED = (b"Z", b"X", b"x")  # states of a process that nobody has waited for yet
_UNFINISHED_S = 60.0
_FOREIGN_S = 30 * 24 * 3600.0
_WITNESS_S = 1.0  # more than a zygote leaves its watchers when its application has ended
_WITNESS_POLL_S = 0.01


class Culprit(NamedTuple):
    """A plugin that a process was loading when it ended.

    Attributes:
        plugin: The plugin's name for users.
        path: Its file.
        sha256: Of its bytes, in hexadecimal digits.
        what: What had begun.
        pid: The process that ended.
        time: When it had begun, in seconds since 1970.
        is_certain: Whether nothing else can have ended the process: it was a trial, whose watchers
            ended as well, while the machine went on; and no other process has left a mark, whose
            plugin may have ended this one too.
        was_suspect: Whether an earlier end of a process was laid on the plugin already, when it
            began.
        mark: The name of the file that says so.
    """

    plugin: str
    path: str
    sha256: str
    what: str
    pid: int
    time: float
    is_certain: bool = False
    was_suspect: bool = False
    mark: str = ""

    def incident(self) -> Incident:
        """Return the incident for the quarantine (LD-070)."""
        message = (
            f"{self.what}: process {self.pid} ended while it did that; perhaps for another reason, "
            "such as SIGKILL or a power cut"
        )
        return Incident(Violation(LOADING_SURVIVED, message), last_call=self.what)


class LoadMarks:
    """The load marks of this user's processes.

    Where nothing can be written, there are none. [any thread]
    """

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory

    @classmethod
    def of_process(cls, environment: Mapping[str, str] | None = None) -> LoadMarks:
        """Return the marks where processes of this user leave them.

        Args:
            environment: Instead of `os.environ`.
        """
        variables = os.environ if environment is None else environment
        place = state_directory(variables, privileged=is_privileged())
        return cls(PrivateDirectory(None if place is None else os.path.join(place, "marks")))

    def around_trial(
        self, plugin: str, path: str, sha256: str, *, is_suspect: bool = False
    ) -> AbstractContextManager[str]:
        """Mark a trial in another process, which may end this one; see `around`."""
        return self.around(plugin, path, f"{_TRYING}{path}", sha256, is_suspect=is_suspect)

    def around(
        self, plugin: str, path: str, what: str, sha256: str, *, is_suspect: bool = False
    ) -> AbstractContextManager[str]:
        """Keep a mark while something runs that may end this process. [any thread]

        Args:
            plugin: The plugin's name for users.
            path: Its file.
            what: What begins, as `loading libx.so`.
            sha256: Of its bytes.
            is_suspect: Whether an earlier end of a process was laid on the plugin (`Culprit`).

        Returns:
            What gives the mark's path, for `witness`; "" where none could be written.

        Raises:
            ShortageError: Nothing can be said of this process now; nothing was begun.
        """
        process = _this_process(os.getpid())
        mark = {
            "plugin": plugin, "path": path, "what": what, "sha256": sha256, "time": time(),
            "suspect": is_suspect, **process._asdict(),
        }  # fmt: skip
        return _Marked(self._directory, json.dumps(mark).encode("ascii"))

    def culprits(self) -> list[Culprit]:
        """Return what ended processes were loading, until `forget` is called. [any thread]

        Processes from before the last start of this machine count. Those of other machines and
        containers do not: for all that can be seen from here, they may still run. It may wait for
        a second, so it is not for a lock that others wait for.

        Raises:
            ShortageError: They cannot be read now; all of them stay.
        """
        self._wait_for_watchers()
        found = sorted(self._collected(), key=lambda culprit: culprit.time)
        if len({culprit.pid for culprit in found}) > 1:
            found = [culprit._replace(is_certain=False) for culprit in found]
        return found

    def forget(self, culprits: Iterable[Culprit]) -> None:
        """Remove the marks of culprits, which are known elsewhere from now on. [any thread]"""
        for culprit in culprits:
            self._directory.remove(culprit.mark)

    def _wait_for_watchers(self) -> None:
        """Wait for watchers to write that they outlived an application that ended just now."""
        end = monotonic() + _WITNESS_S
        while any(map(self._may_be_witnessed, self._directory.changed_at())):
            if monotonic() > end:
                return
            sleep(_WITNESS_POLL_S)

    def _may_be_witnessed(self, name: str) -> bool:
        if not name.endswith(_SUFFIX):
            return False
        mark = _mark(self._directory.read(name, _MOST_BYTES))
        return mark is not None and _is_trial(mark) and not _life_s(mark)

    def _collected(self) -> list[Culprit]:
        found = []
        for name, written in self._directory.changed_at().items():
            if not name.endswith((_SUFFIX, _SUFFIX + WITNESSED)):
                continue
            mark = _mark(self._directory.read(name, _MOST_BYTES))
            life = _life_s(mark)
            if mark is not None and not life:
                told = {key: mark[key] for key in Culprit._fields if key in mark}
                told["is_certain"] = _is_trial(mark) and not name.endswith(WITNESSED)
                told["was_suspect"] = mark.get("suspect") is True
                found.append(Culprit(**{**told, "mark": name}))
            elif time() - written >= life:
                self._directory.remove(name)
        return found


class _Marked:
    """A mark on the disk, from the beginning of a `with` block to its end.

    Whatever interrupts the writing or the removal: the mark goes with this object at the latest.
    One that was left would name a plugin that did no harm.
    """

    def __init__(self, directory: PrivateDirectory, content: bytes) -> None:
        self._directory = directory
        self._content = content
        self._name = f"{os.urandom(8).hex()}{_SUFFIX}"
        self._owner = 0  # the process that wrote it, 0 where there is none

    def __enter__(self) -> str:
        self._owner = os.getpid()
        if not self._directory.create(self._name, self._content):
            self._owner = 0
            return ""
        return os.path.join(self._directory.path or "", self._name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def __del__(self) -> None:
        self._remove()

    def _remove(self) -> None:
        # A child that was forked meanwhile leaves the mark of its parent alone.
        if self._owner == os.getpid():
            if not self._directory.remove(self._name):
                self._directory.remove(f"{self._name}{WITNESSED}")
            self._owner = 0


class _Process(NamedTuple):
    """The identity of a process among those of all times, machines and containers.

    Attributes:
        pid: Its number.
        start: When it began, in ticks since the machine did, which tells it from a later one.
        boot: When the machine began, as a number drawn by chance.
        namespace: Where its number counts.
        machine: The machine.
    """

    pid: int
    start: str
    boot: str
    namespace: str
    machine: str


@lru_cache(maxsize=2)  # a forked child is another one
def _this_process(pid: int) -> _Process:
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError as error:
        raise_shortage(error)
        namespace = ""
    machine = dict(host_fingerprint().parts)["machine-id"] or os.uname().nodename
    return _Process(pid, _start_of(pid) or "", boot_id(), namespace, machine)


def _start_of(pid: int) -> str | None:
    """Return when a process began, None if none of that number runs."""
    # The name of the command comes second, in parentheses, and may hold anything.
    fields = _bytes_of(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < _FIELDS_TO_START or fields[0] in _ENDED:
        return None
    return fields[_FIELDS_TO_START - 1].decode("ascii", "replace")


def _life_s(mark: dict[str, Any] | None) -> float:
    """Return the maximum age of a mark: 0 if its process is gone, infinite if it runs."""
    if mark is None:
        return _UNFINISHED_S  # it is being written, or its writing was cut off
    here = _this_process(os.getpid())
    if mark["machine"] != here.machine:
        return _FOREIGN_S
    if mark["boot"] != here.boot:
        return 0
    if mark["namespace"] != here.namespace:
        return _FOREIGN_S
    return float("inf") if _start_of(mark["pid"]) == mark["start"] else 0


def _is_trial(mark: dict[str, Any]) -> bool:
    """Return whether a mark is of a trial since the last start of this machine."""
    is_of_now: bool = mark["boot"] == boot_id()
    return is_of_now and mark["what"].startswith(_TRYING)


def _mark(data: bytes | None) -> dict[str, Any] | None:
    """Return the content of a mark, None if it is incomplete."""
    try:
        mark = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    if type(mark) is not dict or any(type(mark.get(key)) is not str for key in _TEXTS):
        return None
    right = type(mark.get("pid")) is int and type(mark.get("time")) is float
    return mark if right else None


def _bytes_of(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(4096)
    except OSError as error:
        raise_shortage(error)
        return b""
