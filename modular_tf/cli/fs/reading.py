"""The verbs that write the bytes of files to standard output: `cat`, `head` and `tail`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from modular_tf.cli.frame import Invocation, command
from modular_tf.cli.fs.work import FileWork, uris_argument
from modular_tf.cli.output import report_error
from modular_tf.cli.process import Exit
from modular_tf.cli.values import COUNT, byte_count, byte_range
from modular_tf.concurrency.crew import Crew
from modular_tf.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from modular_tf.filesystem.files import RandomAccessFile
    from modular_tf.filesystem.location import Location

    Part = Callable[[Location, RandomAccessFile], Iterable[bytes | memoryview]]

_FIRST_BLOCK = 2**16  # more lines than usually wanted
_BEGINNING = 2**20  # bytes that are read of files that come next, while one is written
_LARGEST_STEP = 2**22  # bytes that are read at once towards the beginning of a file
_KEPT = 4 * _LARGEST_STEP  # bytes of last lines that stay in memory; more of them are read again


# -- parts of files ---------------------------------------------------------------------------


def bytes_between(
    file: RandomAccessFile, start: int, end: int | None, *, to_end: bool = False
) -> Iterator[memoryview]:
    """Yield the bytes from one position to another. Each block is valid until the next one.

    `end` is the position past the last byte, None for the end of the file; with `to_end` the
    given one is the end of the file. `DataLossError` if the file ended before the length that it
    had when it was opened. The system gives lengths of some files that cannot be read, which is no
    loss.
    """
    whole = file.known_length() if end is None or to_end else None
    length = _BEGINNING if end is None else min(_BEGINNING, max(0, end - start))
    offset, view = start, memoryview(bytearray(length))
    while view and (n_read := file.readinto(offset, view)):
        yield view[:n_read]
        offset += n_read
        if end is not None:
            view = view[: end - offset]
    if whole is not None and offset < whole:
        raise _ended_early(file, offset, whole)


def _ended_early(file: RandomAccessFile, offset: int, whole: int) -> DataLossError:
    text = f"it ended after {offset} of {whole} bytes; try again"
    return DataLossError.of("read", file.uri, text)


def first_lines(file: RandomAccessFile, count: int) -> Iterator[bytes]:
    """Yield the first lines of a file, in blocks."""
    offset = 0
    while count:
        block = file.read(offset, _FIRST_BLOCK)
        end = 0  # the position past so many lines, or the length of a block that has fewer
        for _ in range(count):
            end = block.find(b"\n", end) + 1
            if not end:
                end = len(block)
                break
        yield block[:end]
        if len(block) < _FIRST_BLOCK:
            return
        count -= block.count(b"\n", 0, end)
        offset += len(block)


def last_lines(file: RandomAccessFile, count: int, length: int) -> Iterator[bytes | memoryview]:
    """Yield the last lines of a file of this length, read in blocks from its end.

    `DataLossError` if the file has become shorter than it was when it was opened.
    """
    blocks: list[bytes] = []
    start, step, are_held = length, _FIRST_BLOCK, True
    while count and start:
        begin = max(0, start - step)
        block = file.read(begin, start - begin)
        if file.known_length() is not None and begin + len(block) < start:
            raise _ended_early(file, begin + len(block), length)
        # A newline that ends the file begins no line.
        newline = len(block) - (start == length and block.endswith(b"\n"))
        while count and (newline := block.rfind(b"\n", 0, newline)) >= 0:
            count -= 1
        position = newline + 1 if not count else 0
        blocks.append(block[position:])
        start, step = begin + position, min(2 * step, _LARGEST_STEP)
        if length - start > _KEPT:
            blocks, are_held = [], False
    if are_held:
        yield from reversed(blocks)
    else:
        yield from bytes_between(file, start, length, to_end=True)


# -- writing them -----------------------------------------------------------------------------


def _write_parts(
    call: Invocation, uris: Sequence[str], part: Part, *, headings: bool, end: int | None = None
) -> Exit:
    """Write the part of each file that `part` yields, with `headings` where there are several.

    Nothing past `end` is read. The parts of files that come next are read while one is written.
    """
    if call.json:
        report_error("this writes the bytes of files; --json cannot go with it")
        return Exit.USAGE
    with call.session() as service:
        work = FileWork(service, uris)
        locations = work.expand_all(uris)
        headings = headings and max(len(uris), len(locations)) > 1
        is_first = True
        for outcome in Crew(work.at_once).run(lambda one: _begin(one, part, end), locations):
            with work.about(outcome.item.uri):
                file, beginning, rest = outcome.get()
                with file:
                    if headings:
                        if not is_first:
                            call.line()
                        call.line(f"==> {outcome.item.uri} <==")
                    is_first = False
                    sys.stdout.flush()
                    sys.stdout.buffer.writelines(beginning)
                    sys.stdout.buffer.writelines(rest)
                    sys.stdout.buffer.flush()
    return work.exit_code


def _begin(
    location: Location, part: Part, end: int | None
) -> tuple[RandomAccessFile, list[bytes], Iterator[bytes | memoryview]]:
    """Open a file; return it with the beginning of a part, and the rest, which is not yet read."""
    file = location.filesystem.open_input(location.uri, first_block=_FIRST_BLOCK, size=end)
    try:
        rest = iter(part(location, file))
        beginning: list[bytes] = []
        n_read = 0
        for piece in rest:
            beginning.append(bytes(piece))  # which may be valid until the next one
            n_read += len(piece)
            if n_read >= _BEGINNING:
                break
    except BaseException:
        file.close()
        raise
    return file, beginning, rest


# -- the verbs --------------------------------------------------------------------------------


def _length_of(location: Location, file: RandomAccessFile) -> int:
    known = file.known_length()
    return location.filesystem.get_file_size(location.uri) if known is None else known


@command()
@uris_argument("file")
@click.option(
    "-r", "--range", "wanted", type=byte_range, metavar="RANGE", default="0-",
    help="only these bytes of each file: 0-99 the first 100, 100- what follows, -50 the last 50",
)  # fmt: skip
def cat(call: Invocation, *, uris: tuple[str, ...], wanted: tuple[int, int | None]) -> Exit:
    """Write files to standard output, byte for byte, or a range of their bytes."""
    start, end = wanted

    def part(location: Location, file: RandomAccessFile) -> Iterator[memoryview]:
        begin = start if start >= 0 else max(0, _length_of(location, file) + start)
        return bytes_between(file, begin, end)

    return _write_parts(call, uris, part, headings=False, end=end)


def _part_command(*, is_first: bool) -> click.Command:
    """Make the verb that writes the first or the last lines or bytes of files."""
    which = "first" if is_first else "last"
    purpose = f"Write the {which} lines or bytes of files to standard output; only these are read."

    @command(help=purpose)
    @uris_argument("file")
    @click.option(
        "-n", "--lines", type=COUNT, metavar="N", help=f"the {which} N lines; 10 by default"
    )
    @click.option(
        "-c", "--bytes", "n_bytes", type=byte_count, metavar="N",
        help=f"the {which} N bytes; N may have a unit, as in 64K",
    )  # fmt: skip
    def verb(
        call: Invocation, *, uris: tuple[str, ...], lines: int | None, n_bytes: int | None
    ) -> Exit:
        if lines is not None and n_bytes is not None:
            raise click.UsageError("-n and -c exclude each other", click.get_current_context())
        n_lines = 10 if lines is None else lines

        def part(location: Location, file: RandomAccessFile) -> Iterable[bytes | memoryview]:
            if is_first and n_bytes is None:
                return first_lines(file, n_lines)
            if is_first:
                return bytes_between(file, 0, n_bytes)
            length = _length_of(location, file)
            if n_bytes is None:
                return last_lines(file, n_lines, length)
            return bytes_between(file, max(0, length - n_bytes), length, to_end=True)

        return _write_parts(call, uris, part, headings=True, end=n_bytes if is_first else None)

    return verb


head = _part_command(is_first=True)
tail = _part_command(is_first=False)
