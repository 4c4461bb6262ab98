"""The slots of a raw filesystem that ask and change nothing."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.answers import Answer
from modular_tf.check.breach import MEMORY_RULES, Breach, raise_breach
from modular_tf.check.call_journal import shown
from modular_tf.check.filesystem.raw_paths import RawPaths
from modular_tf.check.filesystem.subject import Stat
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_filesystem import NULL, as_address, read_addresses
from modular_tf.check.native.raw_status import RawStatus
from modular_tf.native.strings import decode, encode, read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self


class RawStatuses:
    """An array of statuses; use it as a context manager, which deletes them. [one thread]

    Attributes:
        array: The `TF_Status **`.
    """

    def __init__(self, count: int, *, poisoned: bool) -> None:
        self._stack = ExitStack()
        enter = self._stack.enter_context
        self._statuses = [enter(RawStatus(poisoned=poisoned)) for _ in range(count)]
        self.array = GuardedMemory.words(*(as_address(one.pointer) for one in self._statuses))

    def codes(self) -> list[int]:
        """Return the code of each."""
        return [status.read().code for status in self._statuses]

    def all_touched(self) -> bool:
        """Return whether each of them was set."""
        return all(status.read().touched for status in self._statuses)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()


_STATISTICS = struct.Struct("=qqB7x")  # TF_FileStatistics
_POISON = b"\xa5" * _STATISTICS.size
_WRITTEN = 17
"""Bytes of a TF_FileStatistics that are not padding."""

_MOST_ENTRIES = 1 << 24
_POINTER = 8
_MEMORY_RULE = MEMORY_RULES["filesystem"]


class RawQueries(RawPaths):
    """The part of a raw filesystem that asks. [any thread]"""

    def path_exists(self, uri: str) -> Answer:
        """Call the slot `path_exists`, and return its answer."""
        return self._on_path("path_exists", uri)

    def paths_exist(self, uris: Sequence[str], *, with_statuses: bool = True) -> Answer:
        """Call it; see `FilesystemSubject`. The code is always OK: each path has its own."""
        self._caller.function("paths_exist")
        names = [self._lend_name(uri) for uri in uris]
        paths = GuardedMemory.words(*(name.address for name in names))
        with RawStatuses(len(uris), poisoned=self._caller.poisoned) as statuses:
            given = statuses.array if with_statuses else None
            arguments = f"[{len(uris)} paths], {len(uris)}, {'statuses' if given else 'NULL'}"
            found = self._caller.ask_plainly(
                "paths_exist",
                arguments,
                self._filesystem.pointer,
                paths.pointer,
                len(uris),
                given.pointer if given else NULL,
                constant=(paths, *names, *([given] if given else [])),
                quietly=True,
            )
            codes = statuses.codes() if given else None
            touched = statuses.all_touched() if given else None
        answered = f"{found}" if codes is None else f"{found}, {shown(codes)}"
        call = f"paths_exist({arguments})"
        self._caller.journal.leave(call, answered)
        return Answer(0, value=codes, returned=_flag(found), touched=touched, call=call)

    def stat(self, uri: str) -> Answer:
        """Call it on poisoned memory; value: a `Stat`, None where nothing was written."""
        result = GuardedMemory(_STATISTICS.size, _POISON)
        answer = self._on_path("stat", uri, result)
        raw = result.raw()
        if raw[:_WRITTEN] == _POISON[:_WRITTEN]:
            return answer
        length, mtime_ns, byte = _STATISTICS.unpack(raw)
        return replace(answer, value=Stat(length, mtime_ns, bool(byte), byte))

    def is_directory(self, uri: str) -> Answer:
        """Call it; value and returned: the flag, the byte where it is neither 0 nor 1."""
        answer = self._on_path("is_directory", uri)
        flag = _flag(answer.returned)
        return replace(answer, value=flag, returned=flag)

    def get_file_size(self, uri: str) -> Answer:
        """Call it; value and returned: the size."""
        answer = self._on_path("get_file_size", uri)
        return replace(answer, value=answer.returned)

    def get_children(self, uri: str) -> Answer:
        """Call it; see `_listed` for the value."""
        entries = GuardedMemory(8)
        return self._listed(self._on_path("get_children", uri, entries), entries)

    def get_matching_paths(self, pattern: str) -> Answer:
        """Call it on the pattern as it is; see `_listed` for the value."""
        entries, given = GuardedMemory(8), GuardedMemory.string(encode(pattern))
        answer = self._caller.ask(
            "get_matching_paths",
            shown(pattern),
            self._filesystem.pointer,
            given.pointer,
            entries.pointer,
            lent=(self._filesystem, entries),
            constant=(given,),
        )
        return self._listed(answer, entries)

    def _listed(self, answer: Answer, entries: GuardedMemory) -> Answer:
        """Copy what was listed, and give it back by the plugin's own free.

        The value is the list, with None for a NULL entry; [] where the count asks for an array
        that is not there. After an error it is None, but [] where an array was left all the
        same, which is not touched: what it holds is unknown.
        """
        array, count = entries.word(), int(answer.returned)
        if not answer.ok or count < 0:
            return replace(answer, value=[] if array else None)
        self._check_room(array, count)
        pointers = read_addresses(array, count) if 0 < count <= _MOST_ENTRIES else ()
        texts = [read_bytes(pointer) for pointer in pointers or ()]
        for pointer in pointers or ():
            self._caller.free(pointer)
        if pointers is not None:
            self._caller.free(array)
        return replace(answer, value=[None if raw is None else decode(raw) for raw in texts])

    def _check_room(self, array: int, count: int) -> None:
        """Look whether an array has room for its count, where the allocator knows its size."""
        room = self._caller.heap.block_size(array)
        if room is not None and room < _POINTER * count:
            found = f"{count} entries in a block of {room} bytes"
            raise_breach(Breach(_MEMORY_RULE, "a list is longer than its array", found=found))


def _flag(byte: int) -> bool | int:
    return bool(byte) if byte in {0, 1} else int(byte)
