"""Reading of files of a network in blocks that grow while reads are sequential.

`Filesystem.open`, `GFile`, the files of `modular_tf.fsspec` and `fs cat` read from what
`Filesystem.open_input` opens, through the buffered `io` object of `modular_tf.filesystem.streams`.

Where a read begins at the end of the one before, the next block is twice as long. After a jump it
is short again: a reader of small parts far from each other would wait for bytes that it never
reads. Where reads jump forward again and again, over fewer bytes than come while a request is on
its way, as a reader of some columns of a table does, blocks hold what lies between them too.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.uri import is_of_this_machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from typing_extensions import Buffer

    from modular_tf.filesystem.filesystem import Filesystem

FIRST_BLOCK = 1 << 18
"""Bytes of the first block, and of one after a jump."""

LARGEST_BLOCK = 1 << 23
"""Bytes of the longest block; what is read in longer pieces is not kept."""

LARGEST_BLOCK_OVER_HOLES = 1 << 24
"""Bytes of the longest block where reads jump forward."""

MOST_BYTES = 1 << 25
"""Bytes that the blocks of one file hold at most."""

# One short jump forward may be chance; two, with at most one other jump between, are a habit.
_SHORT_JUMP, _OTHER_JUMP, _HABIT, _MOST_HABIT = 2, -1, 3, 4

_MEASURED_FROM = 1 << 18
"""Bytes from which on the duration of a read shows the throughput too."""

_MOST_TIMES = 8  # a transfer takes at least the latency divided by this


class FetchTimes:
    """Latency and throughput of the reads of one filesystem. [any thread]

    `reach` is the number of bytes that come within one latency, 0 until a read was measured. To
    read through a hole that is shorter takes less time than a read of its own after it.
    """

    def __init__(self) -> None:
        self._latency = float("inf")
        self.reach = 0

    @contextmanager
    def measured(self, n: int) -> Iterator[None]:
        """Measure the read of `n` bytes in the block, unless it fails."""
        start = monotonic()
        yield
        self.note(n, monotonic() - start)

    def note(self, n: int, seconds: float) -> None:
        """Learn from a read; one that is shorter than the reach changes it by little."""
        self._latency = latency = min(self._latency, seconds)
        if n >= _MEASURED_FROM:
            transfer = max(seconds - latency, latency / _MOST_TIMES)
            shown = int(n * latency / transfer)
            reach = self.reach
            self.reach = shown if n >= reach else reach + (shown - reach) * n // (4 * reach)


class ReadaheadFile(RandomAccessFile):
    """A file whose last blocks are kept in memory. [any thread]; one read at a time

    It closes `file`. Nothing is read ahead past `size`, None if that is unknown. The first block
    has `first` bytes; at most `most` bytes are kept. A block that is short is not taken for the end
    of the file: files grow while they are read. `times` are shared by the files of one store.
    """

    def __init__(
        self,
        file: RandomAccessFile,
        size: int | None,
        first: int = FIRST_BLOCK,
        most: int = MOST_BYTES,
        times: FetchTimes | None = None,
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._size = size
        self._end = sys.maxsize if size is None else size
        self._first = self._block = first
        self._most = most
        self._times = FetchTimes() if times is None or file.holds_bytes else times
        self._jumps = 0  # how much of a habit the short ones are
        self._expected = 0  # where the next sequential read begins
        # Offsets and bytes, the last used last; replaced and never changed, for signal handlers.
        self._blocks: tuple[tuple[int, bytes], ...] = ()
        self._lock = ForkLock()

    def read(self, offset: int, n: int) -> bytes:
        with self._lock:
            held = self._held_or_fetched(offset, n)
            if held is None:
                with self._measured(offset, n):
                    data = self._file.read(offset, n)
            elif len(held) >= n:
                data = bytes(held[:n])
            else:
                return super().read(offset, n)
            self._expected = offset + len(data)
            return data

    def readinto(self, offset: int, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        done = 0
        with self._lock:
            while done < len(target):
                held = self._held_or_fetched(offset + done, len(target) - done)
                if held is None:
                    with self._measured(offset + done, len(target) - done):
                        done += self._file.readinto(offset + done, target[done:])
                    break
                piece = held[: len(target) - done]
                target[done : done + len(piece)] = piece
                done += len(piece)
                self._expected = offset + done
                if not piece:
                    break
            self._expected = offset + done
        return done

    def known_length(self) -> int | None:
        return self._size

    def _held_or_fetched(self, offset: int, n: int) -> memoryview | None:
        """Return what is held from `offset` on, or a new block; None for a read to be passed on."""
        held = self._held_from(offset)
        if held:
            return held
        self._choose_block(offset)
        ahead = min(self._block, self._end - offset)
        return None if n >= ahead else memoryview(self._fetched(offset, ahead))

    def _held_from(self, offset: int) -> memoryview:
        for held in reversed(self._blocks):
            start, block = held
            if start <= offset < start + len(block):
                if held is not self._blocks[-1]:
                    self._blocks = (*(one for one in self._blocks if one is not held), held)
                return memoryview(block)[offset - start :]
        return memoryview(b"")

    def _choose_block(self, offset: int) -> None:
        """Set the length of the block to fetch at `offset`."""
        if offset == self._expected and offset:
            self._block = min(2 * self._block, max(LARGEST_BLOCK, self._first))
            return
        longest = min(2 * self._times.reach, LARGEST_BLOCK_OVER_HOLES, self._most)
        is_short = 0 < offset - self._expected <= longest // 2
        step = _SHORT_JUMP if is_short else _OTHER_JUMP
        self._jumps = max(0, min(self._jumps + step, _MOST_HABIT))
        is_habit = is_short and self._jumps >= _HABIT
        self._block = max(self._first, longest) if is_habit else self._first

    def _measured(self, offset: int, n: int) -> AbstractContextManager[None]:
        """Measure a read, unless it is short: the last bytes may come from memory."""
        n = min(n, self._end - offset)
        return self._times.measured(n) if n >= _MEASURED_FROM else nullcontext()

    def _fetched(self, offset: int, length: int) -> bytes:
        """Read a block and keep it, instead of the one that it continues."""
        with self._measured(offset, length):
            block = self._file.read(offset, length)
        kept = [(start, old) for start, old in self._blocks if start + len(old) != offset]
        while kept and len(block) + sum(len(old) for _, old in kept) > self._most:
            del kept[0]
        self._blocks = (*kept, (offset, block))
        return block

    def close(self) -> None:
        self._blocks = ()
        self._file.close()


def read_ahead(
    filesystem: Filesystem,
    file: RandomAccessFile,
    first: int = FIRST_BLOCK,
    size: int | None = None,
) -> RandomAccessFile:
    """Return a file of a filesystem, read ahead where its bytes come by a network.

    It is closed with the result. By default its length is the one that it knows itself.
    """
    if is_of_this_machine(filesystem.scheme):
        return file
    size = file.known_length() if size is None else size
    return ReadaheadFile(file, size, first, times=filesystem.fetch_times)
