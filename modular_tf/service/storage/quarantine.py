"""The plugins that took a process down, stored until their bytes or the host change.

If there is no room for all, those stay whose incident no trial would show again, then the newest:
so an entry cannot be removed by adding many harmful plugins.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from zlib import crc32

from modular_tf.codec import at_most, between, decode, encode
from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import state_directory
from modular_tf.events import EventLog
from modular_tf.first_contact.finding import Incident  # noqa: TC001  (for the codec)
from modular_tf.rules.shortage import ShortageError
from modular_tf.rules.trust import CALLS_SURVIVED, LOADING_SURVIVED
from modular_tf.service.storage.database import Database, Table, oldest
from modular_tf.service.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from modular_tf.discovery.host_fingerprint import HostFingerprint
    from modular_tf.service.storage.notes import Note, Notes

FOUND_BY_NO_TRIAL = (LOADING_SURVIVED, CALLS_SURVIVED)
_CALLS_TO_QUARANTINE = 3  # in which processes ended
_MOST_OF_A_NAME, _MOST_OF_A_PATH = 255, 4096
_LAST_TIME = 1 << 40
_LEAST_DIGITS = 6
_MOST_BYTES = 32 * 1024 * 1024
_IF_NO_PLUGIN_IS_LEFT = "NOT EXISTS (SELECT 1 FROM plugin)"
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


class QuarantineStore(Database):
    """The quarantine of this user on this machine.

    Each change is on the disk when the call returns if possible, and otherwise lasts as long as
    this object. No method raises. [any thread, one at a time]
    """

    lasts = True
    make_room = (
        oldest("plugin", "found_by_trial DESC, id"),
        oldest("suspect", where=_IF_NO_PLUGIN_IS_LEFT),
        oldest("ended_call", where=_IF_NO_PLUGIN_IS_LEFT),
    )

    def __init__(self, directory: PrivateDirectory, host: HostFingerprint) -> None:
        """Read the quarantine, which `of_process` finds; `host` is the host as it is now."""
        self._host = host
        self._plugins = Table("plugin", "sha256", "found_by_trial", "entry")
        self._suspects = Table("suspect", "sha256", "entry")
        self._ended_calls = Table("ended_call", "note", "sha256", "entry")
        # A home directory may be shared by machines, and what one releases another must keep.
        parts = dict(host.parts)
        machine = repr((parts.get("machine-id"), parts.get("machine")))
        name = f"quarantine-{crc32(machine.encode('utf-8', 'backslashreplace')):08x}"
        tables = (self._plugins, self._suspects, self._ended_calls)
        super().__init__(directory, f"{name}.sqlite", *tables)
        self._take_over_lines(f"{name}.records")
        if any(table.changes for table in tables):
            self.save()

    @classmethod
    def of_process(cls) -> QuarantineStore:
        """Return the quarantine of this process's user."""
        place = state_directory(os.environ, privileged=is_privileged())
        return cls(PrivateDirectory(place), host_fingerprint())

    @property
    def is_empty(self) -> bool:
        """Whether it has no entry of any plugin, as for most users."""
        return not any(table.rows or table.changes for table in self._tables)

    def recall(self, sha256: str) -> Entry | None:
        """Return why these bytes are in quarantine, None where they are not.

        They are released here if the host changed since.
        """
        entry = self._entry_of(self._plugins, sha256)
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
            sha256 = note.sha256
            entry = self._entry(sha256, note.plugin, note.path, note.incident(), note.time)
            suspicion, calls = self.suspicion(sha256), self.ended_calls(sha256)
            known = (suspicion, *calls, self._entry_of(self._plugins, sha256))
            if any(map(entry.is_of_same_end, known)):
                continue
            if note.is_of_call:
                key = f"{note.time:.3f} {note.pid} {sha256}"
                self._ended_calls.put(key, sha256, _json(entry))
                if len(calls) + 1 >= _CALLS_TO_QUARANTINE:
                    for key, (of, _) in self._ended_calls.all().items():
                        if of == sha256:
                            self._ended_calls.drop(key)
                    self._add(entry)
            elif (is_one and note.watchers_ended_too) or (suspicion and note.was_suspect):
                self._add(entry)
            elif suspicion is None:
                self._suspect(entry)
        if self.save():
            source.remove(notes)

    def ended_calls(self, sha256: str) -> list[Entry]:
        """Return the recorded calls of a plugin in which processes ended on this host."""
        texts = [text for of, text in self._ended_calls.all().values() if of == sha256]
        found = [entry for text in texts if (entry := _decoded(sha256, text)) is not None]
        mine = [entry for entry in found if not self._host.changes_since(entry.host)]
        return sorted(mine, key=lambda entry: entry.time)

    def suspicion(self, sha256: str) -> Entry | None:
        """Return why these bytes have to be tried before they run again, None if they need not."""
        return self._entry_of(self._suspects, sha256)

    def clear_suspicion(self, sha256: str) -> None:
        """Record that a process has loaded the plugin and continued."""
        self._suspects.drop(sha256)
        self.save()

    def release(self, sha256: str) -> bool:
        """Release a plugin from quarantine; return whether it was in it.

        What ended a process stays suspect until it has been loaded.
        """
        if self._plugins.get(sha256) is None:
            return False
        entry = self._entry_of(self._plugins, sha256)
        self._plugins.drop(sha256)
        if entry is not None and entry.incident.rule == LOADING_SURVIVED:
            self._suspect(entry)
        self.save()
        return True

    def entries(self) -> list[Entry]:
        """Return all that are in quarantine, the oldest first; those of another host as well."""
        found = (_decoded(sha256, row[-1]) for sha256, row in self._plugins.all().items())
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

    # -- rows -------------------------------------------------------------------------------------

    def _entry(self, sha256: str, name: str, path: str, incident: Incident, when: float) -> Entry:
        return Entry(sha256, name[:_MOST_OF_A_NAME], path, incident, when, dict(self._host.parts))

    def _add(self, entry: Entry) -> Entry:
        self._plugins.put(entry.sha256, *_plugin_row(entry))
        self._suspects.drop(entry.sha256)
        self.save()
        _log.warning(
            "quarantine.added", plugin=entry.name, path=entry.path, rule=entry.incident.rule.id
        )
        return entry

    def _suspect(self, entry: Entry) -> None:
        self._suspects.put(entry.sha256, _json(entry))
        _log.info("quarantine.suspected", plugin=entry.name, path=entry.path)

    def _entry_of(self, table: Table, sha256: str) -> Entry | None:
        row = table.get(sha256)
        return None if row is None else _decoded(sha256, row[-1])

    # -- earlier versions -------------------------------------------------------------------------

    def take_over(self, used: sqlite3.Connection) -> None:
        """Take over the entries of format 1, whose keys had prefixes."""
        self._take_over(used.execute("SELECT key, value FROM record ORDER BY id"))

    def _take_over_lines(self, name: str) -> None:
        """Take over the entries of the time before SQLite, whose file had one in each line."""
        try:
            content = self.directory.read(name, _MOST_BYTES)
        except ShortageError:  # the next process does it
            return
        if content is not None:
            lines = (line.partition(b"\t") for line in content.split(b"\n")[1:])
            self._take_over((key, rest.partition(b"\t")[2]) for key, _, rest in lines)
            if self.save():
                self.directory.remove(name)

    def _take_over(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        for encoded, value in records:
            with suppress(ValueError, RecursionError):
                entry = _entry(value)
                name = decode(str, json.loads(encoded))
                kind, _, rest = name.partition(" ")
                table, key = self._plugins, name
                values: tuple[Any, ...] = _plugin_row(entry)
                if kind == "suspect":
                    table, key, values = self._suspects, rest, (_json(entry),)
                elif kind == "ended":
                    table, key, values = self._ended_calls, rest, (entry.sha256, _json(entry))
                if key not in table.changes and table.get(key) is None:  # else it was dropped since
                    table.put(key, *values)


def _plugin_row(entry: Entry) -> tuple[int, str]:
    return int(entry.incident.rule not in FOUND_BY_NO_TRIAL), _json(entry)


def _json(entry: Entry) -> str:
    return json.dumps(encode(entry))


def _entry(text: Any) -> Entry:
    return decode(Entry, json.loads(text, object_hook=_with_names_of_now))


def _with_names_of_now(record: dict[str, Any]) -> dict[str, Any]:
    """Rename the field that was `said` in entries of earlier versions."""
    if "said" in record:
        record["last_output"] = record.pop("said")
    return record


def _decoded(sha256: str, text: Any) -> Entry | None:
    """Return the entry in a row, None if it is damaged or of another plugin."""
    try:
        entry = _entry(text)
    except Exception:  # noqa: BLE001  (of whatever the file holds, nothing may come up)
        return None
    return entry if entry.sha256 == sha256 else None
