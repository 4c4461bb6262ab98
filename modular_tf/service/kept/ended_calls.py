"""Calls into plugins in which a process ended: reported at once, and to the next process.

The native core does both in a signal handler (`native/core/ended_calls.h`). It writes a file for
each such call, which the next process reads, and removes when it is recorded.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.user_directories import state_directory
from modular_tf.first_contact.finding import Incident
from modular_tf.processes.signal_names import signal_name
from modular_tf.rules import Violation
from modular_tf.rules.kept_state import CALLS_SURVIVED
from modular_tf.service.kept.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SUFFIX = ".ended"
_MOST_BYTES = 64 * 1024
_NUMBERS_END = 1 << 40
_ENDS = {  # in place of signals that end no call: native/core/ended_calls.h
    26: "an exit() that hung",
    32: "pthread_cancel() or pthread_exit() of the main thread",
}
_TYPES = {
    "plugin": str, "path": str, "sha256": str, "machine": str, "call": str, "subject": str,
    "signal": int, "status": int, "pid": int, "time": int,
}  # fmt: skip


class EndedCall(NamedTuple):
    """A call into a plugin in which a process ended.

    Attributes:
        plugin: The plugin's name for users.
        path: Its file.
        sha256: Of its bytes, in hexadecimal digits.
        call: The operation.
        subject: What it was about: a path, or the name of a device; empty for nothing.
        signal: The signal that ended the process, 0 where it called exit(); for other ends one that
            stands for them.
        status: What it gave exit().
        pid: The process.
        time: When, in seconds since 1970.
        note: The name of the file that says so.
    """

    plugin: str
    path: str
    sha256: str
    call: str
    subject: str
    signal: int
    status: int
    pid: int
    time: int
    note: str = ""

    def incident(self) -> Incident:
        """Return the incident for the quarantine (LD-130)."""
        about = f" of {self.subject!r}" if self.subject else ""
        how = _ENDS.get(self.signal) or signal_name(self.signal)
        if not self.signal:
            how = f"exit({self.status})"
        message = f"{self.call}{about}: process {self.pid} ended in it by {how}"
        call = f"{self.call}{about}"
        number = None if self.signal in _ENDS else self.signal or None
        return Incident(Violation(CALLS_SURVIVED, message), number, last_call=call)


@cache
def report_ended_calls(*, leave_notes: bool) -> None:
    """Report on standard error a call in which this process ends, from now on. [any thread]

    Args:
        leave_notes: Also write a note for the next process, if the plugin has a record.
    """
    from modular_tf.native.ffi import lib  # noqa: PLC0415  (who only reads notes needs none)

    place = _directory().made() if leave_notes else None
    lib.mtf_tell_of_ended_calls(b"" if place is None else os.fsencode(place))
    if threading.current_thread() is threading.main_thread() and _is_python():
        lib.mtf_watch_main_thread()
    os.register_at_fork(after_in_child=partial(lib.mtf_tell_of_ended_calls, b""))


def _is_python() -> bool:
    """Return whether the program is Python's, whose main thread ends with the process."""
    try:
        return os.path.samefile("/proc/self/exe", sys.executable)
    except OSError:
        return False


def record_of(plugin: str, path: str, sha256: str) -> str:
    """Return the first part of the notes of a plugin's calls."""
    known = {"plugin": plugin, "path": path, "sha256": sha256, "machine": _machine()}
    return json.dumps(known).removesuffix("}")


def ended_calls(environment: Mapping[str, str] | None = None) -> list[EndedCall]:
    """Return the calls in which processes of this user ended on this machine, until `forget`.

    Args:
        environment: Instead of `os.environ`.

    Raises:
        ShortageError: They cannot be read now; all of them stay.
    """
    directory = _directory(environment)
    names = [name for name in directory.changed_at() if name.endswith(_SUFFIX)]
    notes = {name: _note(directory.read(name, _MOST_BYTES)) for name in names}
    found = []
    for name, note in notes.items():
        if note is not None and note["machine"] != _machine():
            continue  # a home directory that machines share
        if note is None:
            directory.remove(name)
        else:
            told = {key: note[key] for key in EndedCall._fields if key in note}
            found.append(EndedCall(**{**told, "note": name}))
    return sorted(found, key=lambda ended: ended.time)


def forget_ended_calls(
    calls: Iterable[EndedCall], environment: Mapping[str, str] | None = None
) -> None:
    """Remove the notes of calls, which are known elsewhere from now on.

    Args:
        calls: From `ended_calls`.
        environment: As there.
    """
    directory = _directory(environment)
    for call in calls:
        directory.remove(call.note)


def _directory(environment: Mapping[str, str] | None = None) -> PrivateDirectory:
    variables = os.environ if environment is None else environment
    place = state_directory(variables, privileged=is_privileged())
    return PrivateDirectory(None if place is None else os.path.join(place, "ended_calls"))


@cache
def _machine() -> str:
    return dict(host_fingerprint().parts)["machine-id"] or os.uname().nodename


def _note(data: bytes | None) -> dict[str, Any] | None:
    """Return the call in a note, None if the note is incomplete."""
    try:
        note = json.loads(data or b"")
        if type(note) is not dict or any(type(note.get(key)) is not _TYPES[key] for key in _TYPES):
            return None
        if any(not 0 <= note[key] < _NUMBERS_END for key in _TYPES if _TYPES[key] is int):
            return None
        note["subject"] = os.fsdecode(bytes.fromhex(note["subject"]))
    except (ValueError, RecursionError):
        return None
    return note
