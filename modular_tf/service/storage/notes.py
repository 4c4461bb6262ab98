"""Notes of what processes were in when they ended, which the next process reads.

A note is a small file. What may end this process, such as loading a plugin, leaves one while it
runs: were the process to end, its note would name the culprit. Where a call into a plugin ends the
process, the native core writes one (`native/core/process_end.h`).
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Annotated, NamedTuple

from modular_tf.codec import between, decode, encode
from modular_tf.concurrency.threads import is_main_thread
from modular_tf.discovery.file_identity import boot_id
from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import state_directory
from modular_tf.events.event_log import deliver
from modular_tf.first_contact.finding import Incident
from modular_tf.loading.task import WATCHER_SURVIVED
from modular_tf.processes.ending import signal_name
from modular_tf.rules import Violation
from modular_tf.rules.shortage import raise_shortage
from modular_tf.rules.trust import CALLS_SURVIVED, LOADING_SURVIVED
from modular_tf.service.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BEGUN, _ENDED = ".mark", ".ended"
LOADING, TRYING, _CALL = "loading", "trying", "call"
_MOST_BYTES = 64 * 1024
_FIELDS_TO_START = 20  # of /proc/PID/stat, after the command's name: proc_pid_stat(5)
_GONE = (b"Z", b"X", b"x")  # states of a process that nobody has waited for yet
_UNFINISHED_S = 60.0
_FOREIGN_S = 30 * 24 * 3600.0
_WATCHER_S = 1.0  # more than a zygote leaves its watchers when its application has ended
_WATCHER_POLL_S = 0.01
_NUMBERS_END = 1 << 40
_SIGNALS = {  # in place of signals that end no call: native/core/process_end.h
    26: "an exit() that hung",
    32: "pthread_cancel() or pthread_exit() of the main thread",
}
_Number = Annotated[int, between(0, _NUMBERS_END)]


def _path_of(digits: str) -> str:
    return os.fsdecode(bytes.fromhex(digits))


class Note(NamedTuple):
    """What a process was in."""

    plugin: str  # its name for users
    path: str  # its file
    sha256: str  # of its bytes, in hexadecimal digits
    kind: str  # `loading` it, `trying` it in another process, or a `call` into it
    was_suspect: bool  # an earlier end of a process was blamed on the plugin already
    machine: str
    boot: str  # the start of the machine, as a random number
    namespace: str  # where the process's number counts
    # when the process began, in ticks since the machine did: a later one of its number differs
    start: str
    call: str  # the operation that was called
    # of the call: a path, or the name of a device; empty for nothing
    subject: Annotated[str, _path_of]
    # that ended the process, 0 where it called exit(); for other ends one that stands for them
    signal: _Number
    status: _Number  # the argument of exit()
    pid: _Number
    time: Annotated[float, between(0, _NUMBERS_END)]  # in seconds since 1970
    name: str = ""  # of the note's file

    @property
    def is_of_call(self) -> bool:
        """Whether the process ended in a call, for certain; else it may have been stopped."""
        return self.kind == _CALL

    @property
    def watchers_ended_too(self) -> bool:
        """Whether it is of a trial whose watchers ended too, while the machine went on."""
        has_watcher = self.name.endswith(WATCHER_SURVIVED)
        return self.kind == TRYING and self.boot == boot_id() and not has_watcher

    def incident(self) -> Incident:
        """Return the incident for the quarantine: LD-130 of a call, else LD-070."""
        if not self.is_of_call:
            what = f"{self.kind} {self.path}"
            message = (
                f"{what}: process {self.pid} ended while it did that; perhaps for another reason, "
                "such as SIGKILL or a power cut"
            )
            return Incident.of(Violation(LOADING_SURVIVED, message), last_call=what)
        about = f" of {self.subject!r}" if self.subject else ""
        how = _SIGNALS.get(self.signal) or signal_name(self.signal)
        if not self.signal:
            how = f"exit({self.status})"
        message = f"{self.call}{about}: process {self.pid} ended in it by {how}"
        number = None if self.signal in _SIGNALS else self.signal or None
        violation = Violation(CALLS_SURVIVED, message)
        return Incident.of(violation, number, last_call=f"{self.call}{about}")


class Notes:
    """The notes of this user's processes. [any thread]

    Where nothing can be written, there are none.
    """

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory

    @classmethod
    def of_process(cls) -> Notes:
        """Return the notes of this user's processes."""
        place = state_directory(os.environ, privileged=is_privileged())
        return cls(PrivateDirectory(None if place is None else os.path.join(place, "notes")))

    @contextmanager
    def around(
        self, kind: str, plugin: str, path: str, sha256: str, *, was_suspect: bool = False
    ) -> Iterator[str]:
        """Leave a note while a plugin is loaded, or tried in a process that may end this one.

        `kind` is `LOADING` or `TRYING`; yields the path of the note, "" where there can be none. A
        child that is forked meanwhile leaves the note of its parent alone. Raises ShortageError if
        this process cannot be described now; nothing was begun then.
        """
        pid = os.getpid()
        known = (plugin, path, sha256, kind, was_suspect, *_this_process(pid))
        note = Note(*known, call="", subject="", signal=0, status=0, pid=pid, time=time())
        name = f"{os.urandom(8).hex()}{_BEGUN}"
        content = json.dumps(encode(note)).encode("ascii")
        try:
            is_left = self._directory.create(name, content)
            yield os.path.join(self._directory.path or "", name) if is_left else ""
        finally:  # also if it was interrupted: a note that is left names a plugin that did no harm
            if pid == os.getpid():
                try:
                    self._remove(name)
                except BaseException:
                    self._remove(name)
                    raise

    def _remove(self, name: str) -> None:
        if not self._directory.remove(name):
            self._directory.remove(f"{name}{WATCHER_SURVIVED}")

    def of_ended(self) -> list[Note]:
        """Return the notes of processes that ended, the oldest first. [any thread]

        Processes from before the last start of this machine count. Those of other machines and
        containers do not: for all that can be seen from here, they may still run. It may wait for a
        second, so do not call it under a lock that others wait for. Raises ShortageError if they
        cannot be read now; all of them stay.
        """
        # Watchers may write yet that they outlived an application that ended just now.
        end = monotonic() + _WATCHER_S
        while any(map(self._may_have_a_watcher, self._directory.changed_at())):
            if monotonic() > end:
                break
            sleep(_WATCHER_POLL_S)
        found, gone = [], []
        for name, written in self._directory.changed_at().items():
            if not name.endswith((_BEGUN, _BEGUN + WATCHER_SURVIVED, _ENDED)):
                continue
            note = self._read(name)
            life = _life_s(note, name)
            if note is not None and not life:
                found.append(note)
            elif abs(time() - written) >= life:  # the clock may have been set back since
                gone.append(name)
        for name in gone:
            self._directory.remove(name)
        return sorted(found, key=lambda note: note.time)

    def remove(self, notes: Iterable[Note]) -> None:
        """Remove notes, which are recorded elsewhere from now on. [any thread]"""
        for note in notes:
            self._directory.remove(note.name)

    def report_calls(self, *, leave_notes: bool) -> None:
        """Report on standard error a call in which this process ends, from now on. [any thread]

        With `leave_notes` also leave a note for the next process, if the plugin has a `note_of`.
        """
        _report_calls(self._directory.made() if leave_notes else None)

    def _may_have_a_watcher(self, name: str) -> bool:
        note = self._read(name) if name.endswith(_BEGUN) else None
        return note is not None and note.watchers_ended_too and not _life_s(note, name)

    def _read(self, name: str) -> Note | None:
        """Return a note, None if it is incomplete."""
        data = self._directory.read(name, _MOST_BYTES)
        try:
            value = json.loads(data or b"")
            return decode(Note, {**value, "name": name}) if type(value) is dict else None
        except (ValueError, RecursionError):
            return None


def note_of(plugin: str, path: str, sha256: str) -> str:
    """Return the first part of the notes of a plugin's calls, which the native core completes."""
    process = _this_process(os.getpid())
    known = dict(zip(Note._fields, (plugin, path, sha256, _CALL, False, *process), strict=False))
    return json.dumps(known).removesuffix("}")


@cache
def _report_calls(place: str | None) -> None:
    from modular_tf.native.ffi import lib  # noqa: PLC0415  (not for reading notes)

    lib.mtf_tell_of_ended_calls(b"" if place is None else os.fsencode(place))

    def watch() -> None:
        if is_main_thread():
            lib.mtf_watch_main_thread(_is_python())

    deliver(watch)  # by the thread that waits for the one that maps a plugin
    os.register_at_fork(after_in_child=partial(lib.mtf_tell_of_ended_calls, b""))


def _is_python() -> bool:
    """Return whether the program is Python's, whose main thread ends with the process."""
    try:
        return os.path.samefile("/proc/self/exe", sys.executable)
    except OSError:
        return False


@lru_cache(maxsize=2)  # a forked child is another one
def _this_process(pid: int) -> tuple[str, str, str, str]:
    """Return machine, boot, namespace and start of this process, as `Note` has them."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError as error:
        raise_shortage(error)
        namespace = ""
    machine = dict(host_fingerprint().parts)["machine-id"] or os.uname().nodename
    return machine, boot_id(), namespace, _start_of(pid) or ""


def _start_of(pid: int) -> str | None:
    """Return when a process began, None if none of that number runs."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            status = stream.read(4096)
    except OSError as error:
        raise_shortage(error)
        return None
    # The name of the command comes second, in parentheses, and may hold anything.
    fields = status.rpartition(b")")[2].split()
    if len(fields) < _FIELDS_TO_START or fields[0] in _GONE:
        return None
    return fields[_FIELDS_TO_START - 1].decode("ascii", "replace")


def _life_s(note: Note | None, name: str) -> float:
    """Return the maximum age of a note: 0 if its process is gone, infinite if it runs."""
    if note is None:  # it is being written, or its writing was cut off
        return 0 if name.endswith(_ENDED) else _UNFINISHED_S
    machine, boot, namespace, _ = _this_process(os.getpid())
    if note.is_of_call:
        return 0 if note.machine == machine else float("inf")
    if note.machine != machine:
        return _FOREIGN_S
    if note.boot != boot:
        return 0
    if note.namespace != namespace:
        return _FOREIGN_S
    return float("inf") if _start_of(note.pid) == note.start else 0
