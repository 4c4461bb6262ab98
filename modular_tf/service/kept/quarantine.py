"""The plugins that took a process down, kept until their bytes or the host change.

If there is no room for all, those are kept whose incident no trial would show again, then the
newest: so an entry cannot be removed by adding many harmful plugins.
"""

from __future__ import annotations

import os
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.user_directories import state_directory
from modular_tf.events import EventLog
from modular_tf.first_contact.finding import Incident
from modular_tf.rules.kept_state import CALLS_SURVIVED, LOADING_SURVIVED
from modular_tf.service.kept.storage.private_directory import PrivateDirectory
from modular_tf.service.kept.storage.record_file import RecordFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.discovery.host_fingerprint import HostFingerprint
    from modular_tf.rules.shortage import ShortageError
    from modular_tf.service.kept.ended_calls import EndedCall
    from modular_tf.service.kept.load_marks import Culprit

_TITLE = "modular_tf quarantine 1"
_FOUND_BY_NO_TRIAL = (LOADING_SURVIVED, CALLS_SURVIVED)
_CALLS_TO_QUARANTINE = 3  # in which processes ended
_MOST_OF_A_NAME, _MOST_OF_A_PATH = 255, 4096
_LAST_TIME = 1 << 40
_log = EventLog("quarantine")


class Entry(NamedTuple):
    """One plugin in quarantine.

    Attributes:
        sha256: Of its bytes, in hexadecimal digits.
        name: What it was called.
        path: Where it was.
        incident: What it did.
        time: When, in seconds since 1970; of a process that ended, as it noted that.
        host: The parts of the host's fingerprint then.
    """

    sha256: str
    name: str
    path: str
    incident: Incident
    time: float
    host: Mapping[str, str]

    def is_of_same_end(self, other: Entry | None) -> bool:
        """Return whether two entries tell of the same end of a process."""
        return other is not None and (self.time, self.incident) == (other.time, other.incident)

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {
            "sha256": self.sha256,
            "name": self.name,
            "path": self.path,
            "incident": self.incident.as_dict(),
            "time": self.time,
            "host": dict(self.host),
        }

    @classmethod
    def from_dict(cls, value: Any) -> Entry:
        """Return the entry that `as_dict` has written.

        Raises:
            ValueError: It has another shape.
        """
        if type(value) is not dict or value.keys() != set(cls._fields):
            raise ValueError(f"expected an object with {cls._fields}")
        texts = (value["sha256"], value["name"], value["path"])
        host = value["host"]
        if type(host) is not dict or any(
            type(text) is not str for text in (*texts, *host.values())
        ):
            raise ValueError("expected texts")
        if len(value["name"]) > _MOST_OF_A_NAME or len(value["path"]) > _MOST_OF_A_PATH:
            raise ValueError("expected shorter texts")
        if type(value["time"]) not in {int, float} or not 0 <= value["time"] < _LAST_TIME:
            raise ValueError("expected a time")
        return cls(*texts, Incident.from_dict(value["incident"]), value["time"], host)


class QuarantineStore:
    """The quarantine of this user on this machine.

    Each change is on the disk when the call returns if possible, and otherwise lasts as long as
    this object. No method raises. [any thread, one at a time]
    """

    def __init__(self, directory: PrivateDirectory, host: HostFingerprint) -> None:
        """Read the quarantine; `of_process` finds its directory.

        Args:
            directory: Where it is.
            host: The host as it is now.
        """
        self._host = host
        # A home directory may be shared by machines, and what one releases another must keep.
        machine = crc32(repr(_machine_of(host)).encode("utf-8", "backslashreplace"))
        self._records = RecordFile(directory, f"quarantine-{machine:08x}.records", _TITLE, _rank)

    @classmethod
    def of_process(cls, environment: Mapping[str, str] | None = None) -> QuarantineStore:
        """Return the quarantine of the running process's user.

        Args:
            environment: Instead of `os.environ`.
        """
        variables = os.environ if environment is None else environment
        place = state_directory(variables, privileged=is_privileged())
        return cls(PrivateDirectory(place), host_fingerprint())

    def refresh(self) -> None:
        """Read the changes of other processes."""
        self._records.refresh()

    @property
    def shortage(self) -> ShortageError | None:
        """The shortage because of which it could not be read the last time, None for none."""
        return self._records.shortage

    @property
    def is_kept(self) -> bool:
        """Whether all that was changed is on the disk."""
        return not self._records.has_changes

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing of any plugin, which is so for most users."""
        return self._records.is_empty

    def recall(self, sha256: str) -> Entry | None:
        """Return why these bytes are in quarantine, None where they are not.

        They are released here if the host changed since.
        """
        entry = _entry(sha256, self._records.get(sha256))
        if entry is None:
            return None
        changes = self._host.changes_since(entry.host)
        if not changes:
            return entry
        _log.info("quarantine.released", plugin=entry.name, path=entry.path, changes=changes)
        self.release(sha256)
        return None

    def remember(self, sha256: str, name: str, path: str, incident: Incident) -> Entry:
        """Quarantine a plugin by its bytes, on this host.

        Args:
            sha256: Of the plugin's bytes.
            name: The plugin's name for users.
            path: Its file.
            incident: What it did.
        """
        return self._remember(self._entry(sha256, name, path, incident))

    def _remember(self, entry: Entry) -> Entry:
        sha256, name, path, incident = entry[:4]
        self._records.put(sha256, entry.as_dict())
        self._records.drop(_suspect_key(sha256))
        self._records.save()
        _log.warning("quarantine.added", plugin=name, path=path, rule=incident.violation.rule_id)
        return entry

    def add_culprits(self, culprits: Iterable[Culprit]) -> None:
        """Suspect the plugins that ended processes were loading; quarantine them the second time.

        A user may have stopped such a process, so a suspect is tried again before it runs. One
        that does no harm then, but ends the next process too, is quarantined (LD-070), and so is
        a culprit that is certain. Of many processes that were stopped at once, none knew of the
        suspicion when it began. What was added before is not added again.
        """
        for culprit in culprits:
            texts = (culprit.sha256, culprit.plugin, culprit.path)
            entry = self._entry(*texts, culprit.incident(), culprit.time)
            suspicion = self.suspicion(culprit.sha256)
            known = (suspicion, _entry(culprit.sha256, self._records.get(culprit.sha256)))
            if any(map(entry.is_of_same_end, known)):
                continue
            if culprit.is_certain or (suspicion is not None and culprit.was_suspect):
                self._remember(entry)
            elif suspicion is None:
                self._suspect(entry)

    def add_ended_calls(self, calls: Iterable[EndedCall]) -> None:
        """Record calls in which processes ended (LD-130); a plugin's third one quarantines it.

        What was added before is not added again.
        """
        for call in calls:
            texts = (call.sha256, call.plugin, call.path)
            entry = self._entry(*texts, call.incident(), float(call.time))
            recorded = self.ended_calls(call.sha256)
            known = (*recorded, _entry(call.sha256, self._records.get(call.sha256)))
            if any(map(entry.is_of_same_end, known)):
                continue
            number = len(recorded) + 1
            if number >= _CALLS_TO_QUARANTINE:
                self._forget_ended_calls(call.sha256)
                self._remember(entry)
                continue
            self._records.put(_ended_key(call.sha256, number), entry.as_dict())
            self._records.save()

    def ended_calls(self, sha256: str) -> list[Entry]:
        """Return the recorded calls of a plugin in which processes ended on this host."""
        keys = (_ended_key(sha256, number) for number in range(1, _CALLS_TO_QUARANTINE))
        found = (_entry(sha256, self._records.get(key)) for key in keys)
        return [entry for entry in found if entry and not self._host.changes_since(entry.host)]

    def _forget_ended_calls(self, sha256: str) -> None:
        for number in range(1, _CALLS_TO_QUARANTINE):
            self._records.drop(_ended_key(sha256, number))

    def _suspect(self, entry: Entry) -> None:
        self._records.put(_suspect_key(entry.sha256), entry.as_dict())
        self._records.save()
        _log.info("quarantine.suspected", plugin=entry.name, path=entry.path)

    def _entry(
        self, sha256: str, name: str, path: str, incident: Incident, when: float | None = None
    ) -> Entry:
        texts = (sha256, name[:_MOST_OF_A_NAME], path)
        when = when if when is not None and 0 <= when < _LAST_TIME else time()
        return Entry(*texts, incident, when, dict(self._host.parts))

    def suspicion(self, sha256: str) -> Entry | None:
        """Return why these bytes have to be tried before they run again, None if they need not."""
        return _entry(sha256, self._records.get(_suspect_key(sha256)))

    def clear_suspicion(self, sha256: str) -> None:
        """Record that a process has loaded the plugin and continued."""
        self._records.drop(_suspect_key(sha256))
        self._records.save()

    def release(self, sha256: str) -> bool:
        """Release a plugin from quarantine; return whether it was in it.

        What ended a process stays suspect until it has been loaded.
        """
        value = self._records.get(sha256)
        if value is None:
            return False
        self._records.drop(sha256)
        entry = _entry(sha256, value)
        if entry is not None and entry.incident.violation.rule == LOADING_SURVIVED:
            self._suspect(entry)
        self._records.save()
        return True

    def entries(self) -> list[Entry]:
        """Return all that are in quarantine, the oldest first; those of another host as well."""
        found = (_entry(key, value) for key, value in self._records.items())
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.time)

    def named(self, name: str) -> list[Entry]:
        """Return the entries with a name, a path or the first digits of a SHA-256."""
        path = os.path.abspath(name)
        return [
            entry
            for entry in self.entries()
            if name == entry.name
            or path == entry.path
            or (len(name) >= _LEAST_DIGITS and entry.sha256.startswith(name.lower()))
        ]

    def changes_since(self, entry: Entry) -> list[str]:
        """Return the changes of the host since an entry was made, in words; empty for none."""
        return self._host.changes_since(entry.host)


_LEAST_DIGITS = 6


def _suspect_key(sha256: str) -> str:
    return f"suspect {sha256}"


def _ended_key(sha256: str, number: int) -> str:
    return f"ended {number} {sha256}"


def _machine_of(host: HostFingerprint) -> tuple[str | None, ...]:
    parts = dict(host.parts)
    return parts.get("machine-id"), parts.get("machine")


def _rank(value: Any) -> int:
    """Return 1 for an incident that no trial would show again, else 0."""
    try:
        return int(value["incident"]["rule"] in _FOUND_BY_NO_TRIAL)
    except (TypeError, KeyError, IndexError):
        return 0


def _entry(sha256: str, value: Any) -> Entry | None:
    """Return the entry in a record, None if it is damaged or of another plugin."""
    if value is None:
        return None
    try:
        entry = Entry.from_dict(value)
    except Exception:  # noqa: BLE001  (of whatever the file holds, nothing may come up)
        return None
    return entry if entry.sha256 == sha256 else None
