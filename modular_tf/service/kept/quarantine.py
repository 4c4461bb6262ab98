"""The plugins that took a process down, stored until their bytes or the host change.

If there is no room for all, those stay whose incident no trial would show again, then the newest:
so an entry cannot be removed by adding many harmful plugins.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Annotated, NamedTuple
from zlib import crc32

from modular_tf.codec import at_most, between, decode, encode
from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import state_directory
from modular_tf.events import EventLog
from modular_tf.first_contact.finding import Incident  # noqa: TC001  (for the codec)
from modular_tf.rules.shortage import ShortageError
from modular_tf.rules.trust import CALLS_SURVIVED, LOADING_SURVIVED
from modular_tf.service.kept.private_directory import PrivateDirectory
from modular_tf.service.kept.records import Records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modular_tf.discovery.host_fingerprint import HostFingerprint
    from modular_tf.service.kept.notes import Note, Notes

_TITLE = "modular_tf quarantine 1"
_FOUND_BY_NO_TRIAL = (LOADING_SURVIVED, CALLS_SURVIVED)
_CALLS_TO_QUARANTINE = 3  # in which processes ended
_MOST_OF_A_NAME, _MOST_OF_A_PATH = 255, 4096
_LAST_TIME = 1 << 40
_LEAST_DIGITS = 6
_MOST_BYTES = 32 * 1024 * 1024
_SUSPECT, _ENDED = "suspect ", "ended "  # before a SHA-256
_log = EventLog("quarantine")


class Entry(NamedTuple):
    """One plugin in quarantine; its name and path are those of then."""

    sha256: str  # of its bytes, in hexadecimal digits
    name: Annotated[str, at_most(_MOST_OF_A_NAME)]
    path: Annotated[str, at_most(_MOST_OF_A_PATH)]
    incident: Incident
    # of the incident, in seconds since 1970; of a process that ended, as it noted that
    time: Annotated[float, between(0, _LAST_TIME)]
    host: dict[str, str]  # the parts of the host's fingerprint then

    def is_of_same_end(self, other: Entry | None) -> bool:
        """Return whether two entries are about the same end of a process."""
        return other is not None and (self.time, self.incident) == (other.time, other.incident)


class QuarantineStore:
    """The quarantine of this user on this machine.

    Each change is on the disk when the call returns if possible, and otherwise lasts as long as
    this object. No method raises. [any thread, one at a time]
    """

    def __init__(self, directory: PrivateDirectory, host: HostFingerprint) -> None:
        """Read the quarantine, which `of_process` finds; `host` is the host as it is now."""
        self._host = host
        # A home directory may be shared by machines, and what one releases another must keep.
        parts = dict(host.parts)
        machine = repr((parts.get("machine-id"), parts.get("machine")))
        name = f"quarantine-{crc32(machine.encode('utf-8', 'backslashreplace')):08x}"
        self._records = Records(directory, f"{name}.sqlite", _TITLE, lasts=True)
        self._import(directory, f"{name}.records")

    @classmethod
    def of_process(cls, environment: Mapping[str, str] | None = None) -> QuarantineStore:
        """Return the quarantine of this process's user; `environment` replaces `os.environ`."""
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
    def damaged(self) -> str | None:
        """The file to which a damaged quarantine was renamed, if one is there."""
        return self._records.damaged

    @property
    def is_empty(self) -> bool:
        """Whether it has no entry of any plugin, as for most users."""
        return self._records.is_empty

    def recall(self, sha256: str) -> Entry | None:
        """Return why these bytes are in quarantine, None where they are not.

        They are released here if the host changed since.
        """
        entry = self._get(sha256)
        if entry is None:
            return None
        changes = self._host.changes_since(entry.host)
        if not changes:
            return entry
        _log.info("quarantine.released", plugin=entry.name, path=entry.path, changes=changes)
        self.release(sha256)
        return None

    def remember(self, sha256: str, name: str, path: str, incident: Incident) -> Entry:
        """Quarantine a plugin by the SHA-256 of its bytes, on this host."""
        return self._add(self._entry(sha256, name, path, incident, time()))

    def take(self, notes: Sequence[Note], source: Notes) -> None:
        """Record what ended processes left behind, and remove it once that is on the disk.

        A plugin that a process was loading is suspected, since a user may have stopped that
        process: it is tried again before it runs. If it does no harm then, but ends the next
        process too, it is quarantined (LD-070), and so is one whose trial ended the process for
        certain. Of many processes that were stopped at once, none knew of the suspicion when it
        began. Of calls in which processes ended, the third one quarantines (LD-130). What was
        recorded before is not recorded again.

        `source` is where the notes were read (`Notes.of_ended`). Raises ShortageError if it is not
        known now what was recorded before; nothing was recorded then.
        """
        if not notes:
            return
        self.refresh()
        if self.shortage is not None:
            raise self.shortage
        is_one = len({note.pid for note in notes if not note.is_of_call}) == 1
        for note in notes:
            texts = (note.sha256, note.plugin, note.path)
            entry = self._entry(*texts, note.incident(), note.time)
            suspicion, calls = self.suspicion(note.sha256), self.ended_calls(note.sha256)
            if any(map(entry.is_of_same_end, (suspicion, *calls, self._get(note.sha256)))):
                continue
            if note.is_of_call:
                self._put(f"{_ENDED}{note.time:.3f} {note.pid} {note.sha256}", entry)
                if len(calls) + 1 >= _CALLS_TO_QUARANTINE:
                    self._drop_calls(note.sha256)
                    self._add(entry)
            elif (is_one and note.is_of_lonely_trial) or (suspicion and note.was_suspect):
                self._add(entry)
            elif suspicion is None:
                self._suspect(entry)
        if self._records.save():
            source.remove(notes)

    def ended_calls(self, sha256: str) -> list[Entry]:
        """Return the recorded calls of a plugin in which processes ended on this host."""
        found = (self._get(sha256, key) for key in self._calls(sha256))
        mine = [entry for entry in found if entry and not self._host.changes_since(entry.host)]
        return sorted(mine, key=lambda entry: entry.time)

    def suspicion(self, sha256: str) -> Entry | None:
        """Return why these bytes have to be tried before they run again, None if they need not."""
        return self._get(sha256, f"{_SUSPECT}{sha256}")

    def clear_suspicion(self, sha256: str) -> None:
        """Record that a process has loaded the plugin and continued."""
        self._records.drop(f"{_SUSPECT}{sha256}")
        self._records.save()

    def release(self, sha256: str) -> bool:
        """Release a plugin from quarantine; return whether it was in it.

        What ended a process stays suspect until it has been loaded.
        """
        if self._records.get(sha256) is None:
            return False
        entry = self._get(sha256)
        self._records.drop(sha256)
        if entry is not None and entry.incident.rule == LOADING_SURVIVED:
            self._suspect(entry)
        self._records.save()
        return True

    def entries(self) -> list[Entry]:
        """Return all that are in quarantine, the oldest first; those of another host as well."""
        found = (self._get(key) for key, _ in self._records.items())
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

    # -- records ----------------------------------------------------------------------------------

    def _entry(self, sha256: str, name: str, path: str, incident: Incident, when: float) -> Entry:
        when = when if 0 <= when < _LAST_TIME else time()
        return Entry(sha256, name[:_MOST_OF_A_NAME], path, incident, when, dict(self._host.parts))

    def _add(self, entry: Entry) -> Entry:
        self._put(entry.sha256, entry)
        self._records.drop(f"{_SUSPECT}{entry.sha256}")
        self._records.save()
        _log.warning(
            "quarantine.added", plugin=entry.name, path=entry.path, rule=entry.incident.rule.id
        )
        return entry

    def _suspect(self, entry: Entry) -> None:
        self._put(f"{_SUSPECT}{entry.sha256}", entry)
        _log.info("quarantine.suspected", plugin=entry.name, path=entry.path)

    def _put(self, key: str, entry: Entry) -> None:
        rank = int(entry.incident.rule in _FOUND_BY_NO_TRIAL)
        self._records.put(key, encode(entry), digest=entry.sha256, rank=rank)

    def _get(self, sha256: str, key: str | None = None) -> Entry | None:
        """Return the entry in a record, None if it is damaged or of another plugin."""
        value = self._records.get(key or sha256)
        if value is None:
            return None
        try:
            entry = decode(Entry, value)
        except Exception:  # noqa: BLE001  (of whatever the file holds, nothing may come up)
            return None
        return entry if entry.sha256 == sha256 else None

    def _calls(self, sha256: str) -> list[str]:
        keys = self._records.keys_with_digest(sha256)
        return [key for key in keys if key.startswith(_ENDED)]

    def _drop_calls(self, sha256: str) -> None:
        for key in self._calls(sha256):
            self._records.drop(key)

    def _import(self, directory: PrivateDirectory, name: str) -> None:
        """Take over the entries of earlier versions, whose file had one in each line, once."""
        try:
            content = directory.read(name, _MOST_BYTES)
        except ShortageError:  # the next process does it
            return
        if content is None:
            return
        for line in content.split(b"\n")[1:]:
            key, _, rest = line.partition(b"\t")
            with suppress(ValueError, RecursionError):
                entry = decode(Entry, json.loads(rest.partition(b"\t")[2]))
                self._put(decode(str, json.loads(key)), entry)
        if self._records.save():
            directory.remove(name)
