"""A filesystem plugin by its own slots, with nothing of the host's in between."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from modular_tf.check.answers import Answer
from modular_tf.check.call_journal import CallJournal, shown
from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.raw_call import RawCaller
from modular_tf.check.filesystem.raw_files import RawHandle, RawReader, RawRegion, RawWriter
from modular_tf.check.filesystem.raw_queries import RawQueries
from modular_tf.check.filesystem.raw_settings import RawSettings
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_filesystem import RawSlots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.heap_watch import HeapWatch
    from modular_tf.loading.filesystem_tables import FilesystemTables

_UNTOUCHED_COUNT = (1 << 64) - 1


class RawFilesystem(RawQueries, RawSettings):
    """One `TF_Filesystem` of a plugin; it keeps the protocol `FilesystemSubject`. [any thread]

    Nothing is called before `init`.

    Args:
        tables: The accepted tables; the host's protected copy is used, in the plugin's layout.
        journal: Records each call; None for a new one.

    Attributes:
        tables: The tables.
        journal: Records each call.
    """

    def __init__(self, tables: FilesystemTables, journal: CallJournal | None = None) -> None:
        self.tables = tables
        self.journal = journal or CallJournal()
        addresses = {name: table.slots for name, table in tables.tables.items()}
        slots = RawSlots(addresses, _free_of(tables))
        super().__init__(RawCaller(slots, self.journal), GuardedMemory(8))
        self._numbers = {word: count(1) for word in ("file", "writer", "region")}
        self._opened: list[RawHandle] = []

    # -- life -----------------------------------------------------------------------------------

    def init(self) -> Answer:
        """Call `init` on a zeroed struct; see `handle` for what it left there."""
        return self._caller.ask(
            "init", "filesystem", self._filesystem.pointer, lent=(self._filesystem,)
        )

    def cleanup(self) -> None:
        """Clean up the filesystem by the slot `cleanup`."""
        self._caller.ask_plainly("cleanup", "filesystem", self._filesystem.pointer)

    @property
    def handle(self) -> int:
        """The plugin's pointer in the struct."""
        return self._filesystem.word()

    def is_in_worker(self) -> bool:
        """Report that it is in this process."""
        return False

    def another(self) -> RawFilesystem:
        """Return a further filesystem of the same tables and journal, before its `init`."""
        return RawFilesystem(self.tables, self.journal)

    def close_left_open(self) -> None:
        """Call the `cleanup` of whatever was opened here and not cleaned up."""
        opened, self._opened = self._opened, []
        for handle in opened:
            handle.cleanup()

    @contextmanager
    def poisoned(self) -> Iterator[None]:
        """Preset statuses to UNKNOWN within the block, so that one that is not set is an error.

        `Answer.touched` tells of it in any case.
        """
        with self._caller.poison():
            yield

    # -- what is there --------------------------------------------------------------------------

    def has(self, slot: str) -> bool:
        """Return whether the plugin has a slot; see `FilesystemSubject`."""
        return self._caller.slots.has(slot)

    def offers(self, slot: str) -> bool:
        """Return the same: nothing stands in for a slot here."""
        return self.has(slot)

    @property
    def heap(self) -> HeapWatch:
        """What sees the harm that calls do to the heap."""
        return self._caller.heap

    @property
    def calls(self) -> list[str]:
        """The calls so far."""
        return self.journal.calls

    # -- opening --------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> Answer:
        """Open for reading; value: a `RawReader`."""
        return self._open("new_random_access_file", uri, RawReader, "file")

    def new_writable_file(self, uri: str) -> Answer:
        """Create or empty; value: a `RawWriter`."""
        return self._open("new_writable_file", uri, RawWriter, "writer")

    def new_appendable_file(self, uri: str) -> Answer:
        """Open for writing at the end; value: a `RawWriter`."""
        return self._open("new_appendable_file", uri, RawWriter, "writer")

    def new_read_only_memory_region_from_file(self, uri: str) -> Answer:
        """Offer as memory; value: a `RawRegion`."""
        return self._open("new_read_only_memory_region_from_file", uri, RawRegion, "region")

    def _open(self, slot: str, uri: str, kind: type[RawHandle], word: str) -> Answer:
        handle = GuardedMemory(8)
        name = f"{word}{next(self._numbers[word])}"
        answer = self._on_path(slot, uri, handle, more=f", &{name}")
        if not answer.ok and not handle.word():
            return answer
        opened = kind(self._caller, handle, name)
        self._opened.append(opened)
        return replace(answer, value=opened)

    # -- directories and files ------------------------------------------------------------------

    def create_dir(self, uri: str) -> Answer:
        """Call the slot `create_dir`, and return its answer."""
        return self._on_path("create_dir", uri)

    def recursively_create_dir(self, uri: str) -> Answer:
        """Call the slot `recursively_create_dir`, and return its answer."""
        return self._on_path("recursively_create_dir", uri)

    def delete_file(self, uri: str) -> Answer:
        """Call the slot `delete_file`, and return its answer."""
        return self._on_path("delete_file", uri)

    def delete_dir(self, uri: str) -> Answer:
        """Call the slot `delete_dir`, and return its answer."""
        return self._on_path("delete_dir", uri)

    def delete_recursively(self, uri: str) -> Answer:
        """Call it; value: both counters, which are preset to 2^64-1."""
        files, directories = (GuardedMemory.words(_UNTOUCHED_COUNT) for _ in range(2))
        answer = self._on_path("delete_recursively", uri, files, directories)
        return replace(answer, value=(files.word(), directories.word()))

    def rename_file(self, source: str, target: str) -> Answer:
        """Call the slot `rename_file`, and return its answer."""
        return self._on_two_paths("rename_file", source, target)

    def copy_file(self, source: str, target: str) -> Answer:
        """Call the slot `copy_file`, and return its answer."""
        return self._on_two_paths("copy_file", source, target)

    def _on_two_paths(self, slot: str, source: str, target: str) -> Answer:
        self._caller.function(slot)
        names = (self._lend_name(source), self._lend_name(target))
        return self._caller.ask(
            slot,
            f"{shown(source)}, {shown(target)}",
            self._filesystem.pointer,
            *(name.pointer for name in names),
            lent=(self._filesystem,),
            constant=names,
        )

    def flush_caches(self) -> Answer:
        """Call it; the answer is always OK."""
        self._caller.ask_plainly("flush_caches", "filesystem", self._filesystem.pointer)
        return Answer(0)


def open_raw(tables: FilesystemTables, journal: CallJournal | None = None) -> RawFilesystem:
    """Return an initialised filesystem.

    Raises:
        Blocked: Its `init` failed.
    """
    made = RawFilesystem(tables, journal)
    answer = made.init()
    if not answer.ok:
        raise Blocked(
            f"init of scheme {tables.scheme!r} failed with {answer.code}: {answer.message}"
        )
    return made


def _free_of(tables: FilesystemTables) -> int:
    """Return the plugin's free, which stands behind the tables in the protected block."""
    address: Any = struct.unpack("=Q", tables.protected.view()[-8:])[0]
    return int(address)
