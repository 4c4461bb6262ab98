"""Writing the first or last part of files to standard output, for `fs head` and `fs tail`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures, report_error
from modular_tf.cli.fs.arguments import byte_count, count
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.session import session
from modular_tf.concurrency.crew import Crew
from modular_tf.filesystem.scheme import scheme_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

    from modular_tf.cli.fs.place import Place
    from modular_tf.cli.printer import Printer
    from modular_tf.filesystem.files import RandomAccessFile

    Part = Callable[[Place, RandomAccessFile], Iterable[bytes | memoryview]]

_BEGINNING = 2**20  # bytes of a part that are read while another one is written


def add_part_options(parser: ArgumentParser, which: str) -> None:
    """Let the verb take a number of lines, 10 by default, or of bytes."""
    amounts = parser.add_mutually_exclusive_group()
    amounts.add_argument(
        "-n", "--lines", type=count, metavar="N", default=10,
        help=f"the {which} N lines; 10 by default",
    )  # fmt: skip
    amounts.add_argument(
        "-c", "--bytes", type=byte_count, metavar="N",
        help=f"the {which} N bytes; N may have a unit, as in 64K",
    )  # fmt: skip


def write_parts(options: Namespace, printer: Printer, part: Part) -> Exit:
    """Write the part of each file that `part` yields; several files have headings.

    The parts of files that come next are read while one is written.
    """
    if printer.json:
        report_error("this writes the bytes of files; --json cannot go with it")
        return Exit.USAGE
    failures = Failures()
    with session(options) as service:
        at_once = service.calls_at_once(*map(scheme_of, options.uris))
        places = list(expand_all(service, options.uris, failures))
        with_headings = max(len(options.uris), len(places)) > 1
        is_first = True
        for outcome in Crew(at_once).run(lambda place: _begin(place, part), places):
            with failures.about(outcome.item.uri), outcome.get() as begun:
                if with_headings:
                    _write_heading(outcome.item, printer, is_first=is_first)
                is_first = False
                sys.stdout.flush()
                sys.stdout.buffer.writelines(begun.pieces())
                sys.stdout.buffer.flush()
    return failures.exit_code


class _Begun:
    """A part of an open file, of which the beginning has been read."""

    def __init__(self, file: RandomAccessFile, part: Iterable[bytes | memoryview]) -> None:
        self._file = file
        self._rest = iter(part)
        self._beginning: list[bytes] = []
        n_read = 0
        for piece in self._rest:
            self._beginning.append(bytes(piece))  # which may be valid until the next one
            n_read += len(piece)
            if n_read >= _BEGINNING:
                break

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the part piece by piece, each valid until the next one."""
        yield from self._beginning
        yield from self._rest


def _begin(place: Place, part: Part) -> _Begun:
    file = place.filesystem.new_random_access_file(place.uri)
    try:
        return _Begun(file, part(place, file))
    except BaseException:
        file.close()
        raise


def _write_heading(place: Place, printer: Printer, *, is_first: bool) -> None:
    if not is_first:
        printer.line()
    printer.line(f"==> {place.uri} <==")
