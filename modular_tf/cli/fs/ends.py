"""Reading the first or last lines of a file, and no more of it than is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.fs.stream import CHUNK, chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.files import RandomAccessFile

_FIRST_BLOCK = 2**16  # more lines than usually asked for; each further block is twice as long
_BEGINNING = 2**20  # bytes to read first: those of many files wait to be written
_KEPT = 4 * CHUNK  # bytes of last lines that are kept in memory; more of them are read again


def first_lines(file: RandomAccessFile, count: int) -> Iterator[bytes]:
    """Yield the first lines of a file, in blocks that grow."""
    offset, length = 0, _FIRST_BLOCK
    while count:
        block = file.read(offset, length)
        end = _after_lines(block, count)
        yield block[:end]
        if len(block) < length:
            return
        count -= block.count(b"\n", 0, end)
        offset, length = offset + length, min(2 * length, CHUNK)


def _after_lines(block: bytes, count: int) -> int:
    """Return the position behind so many lines of a block; its length if it has fewer."""
    end = 0
    for _ in range(count):
        newline = block.find(b"\n", end)
        if newline < 0:
            return len(block)
        end = newline + 1
    return end


def bytes_between(file: RandomAccessFile, start: int, end: int) -> Iterator[memoryview]:
    """Yield the bytes from one position to another; the first block is a small one."""
    middle = min(end, start + _BEGINNING)
    offset = start
    for block in chunks(file, start, middle):
        offset += len(block)
        yield block
    if offset == middle:  # else the file has ended
        yield from chunks(file, middle, end)


def last_lines(file: RandomAccessFile, count: int, length: int) -> Iterator[bytes | memoryview]:
    """Yield the last lines of a file of this length, read in blocks from its end."""
    blocks: list[bytes] = []
    start, step, kept = length, _FIRST_BLOCK, True
    while count and start:
        begin = max(0, start - step)
        block = file.read(begin, start - begin)
        # A newline that ends the file begins no line.
        end = len(block) - (start == length and block.endswith(b"\n"))
        position, count = _before_lines(block, count, end)
        blocks.append(block[position:])
        start, step = begin + position, min(2 * step, CHUNK)
        if length - start > _KEPT:
            blocks, kept = [], False
    if kept:
        yield from reversed(blocks)
    else:
        yield from chunks(file, start, length)


def _before_lines(block: bytes, count: int, end: int) -> tuple[int, int]:
    """Return the position where the last lines before `end` begin, and how many are lacking."""
    while count:
        newline = block.rfind(b"\n", 0, end)
        if newline < 0:
            return 0, count
        end, count = newline, count - 1
    return end + 1, 0
