"""Open files and regions of a plugin, by its own slots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.call_journal import shown
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_filesystem import (
    RANDOM_ACCESS_FILE,
    READ_ONLY_MEMORY_REGION,
    WRITABLE_FILE,
    as_address,
    copy_memory,
)

if TYPE_CHECKING:
    from typing import ClassVar

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.raw_call import RawCaller


class RawHandle:
    """A struct of one pointer that an opening slot filled, until its `cleanup`.

    Attributes:
        memory: The struct; the plugin keeps its pointer.
        name: How the journal calls it.
        is_open: Whether `cleanup` has not been called yet.
    """

    table: ClassVar[str] = ""

    def __init__(self, caller: RawCaller, memory: GuardedMemory, name: str) -> None:
        self.memory = memory
        self.name = name
        self.is_open = True
        self._caller = caller

    @property
    def handle(self) -> int:
        """The plugin's pointer in the struct."""
        return self.memory.word()

    def cleanup(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        if self.is_open:
            self.is_open = False
            self._caller.ask_plainly("cleanup", self.name, self.memory.pointer, table=self.table)


class RawReader(RawHandle):
    """An open `TF_RandomAccessFile`."""

    table = RANDOM_ACCESS_FILE

    def read(self, offset: int, n: int) -> Answer:
        """Call `read`; see `Reader`."""
        buffer = GuardedMemory(n)
        answer = self._caller.ask(
            "read",
            f"{self.name}, offset={offset}, n={n}",
            self.memory.pointer,
            offset,
            n,
            buffer.pointer,
            table=self.table,
            lent=(self.memory, buffer),
        )
        return replace(answer, value=buffer.raw(max(0, min(int(answer.returned), n))))

    def close(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        self.cleanup()


class RawWriter(RawHandle):
    """An open `TF_WritableFile`."""

    table = WRITABLE_FILE

    def append(self, data: bytes) -> Answer:
        """Call `append` with a copy of the bytes, which is overwritten afterwards."""
        buffer = GuardedMemory(len(data), data)
        answer = self._caller.ask(
            "append",
            f"{self.name}, {shown(data)}",
            self.memory.pointer,
            buffer.pointer,
            len(data),
            table=self.table,
            lent=(self.memory,),
            constant=(buffer,),
        )
        buffer.scribble()
        return answer

    def tell(self) -> Answer:
        """Call the slot `tell`, and return its answer."""
        answer = self._ask("tell")
        return replace(answer, value=answer.returned)

    def flush(self) -> Answer:
        """Call the slot `flush`, and return its answer."""
        return self._ask("flush")

    def sync(self) -> Answer:
        """Call the slot `sync`, and return its answer."""
        return self._ask("sync")

    def close(self) -> Answer:
        """Call `close` alone."""
        return self._ask("close")

    def _ask(self, slot: str) -> Answer:
        return self._caller.ask(
            slot, self.name, self.memory.pointer, table=self.table, lent=(self.memory,)
        )


class RawRegion(RawHandle):
    """An open `TF_ReadOnlyMemoryRegion`."""

    table = READ_ONLY_MEMORY_REGION

    def address(self) -> int:
        """Return the address that the slot `data` gives."""
        pointer = self._caller.ask_plainly("data", self.name, self.memory.pointer, table=self.table)
        return as_address(pointer)

    def length(self) -> int:
        """Return the number that the slot `length` gives."""
        length = self._caller.ask_plainly(
            "length", self.name, self.memory.pointer, table=self.table
        )
        return int(length)

    def content(self) -> bytes:
        """Copy the bytes from `data` on, as many as `length` says."""
        length = self.length()
        return copy_memory(self.address(), length) if length else b""

    def close(self) -> None:
        """Call `cleanup`; a second call does nothing."""
        self.cleanup()
