"""Write files to standard output, byte for byte, or a range of their bytes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures, report_error
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.byte_range import ByteRange
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.stream import chunks
from modular_tf.cli.session import session
from modular_tf.concurrency.crew import Crew
from modular_tf.filesystem.scheme import scheme_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.fs.place import Place
    from modular_tf.cli.printer import Printer
    from modular_tf.filesystem.files import RandomAccessFile

_BEGINNING = 2**20  # bytes that are read of files that come next, while one is written


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "file")
    parser.add_argument(
        "-r", "--range", type=ByteRange.parse, metavar="RANGE", default=ByteRange(),
        help="only these bytes of each file: 0-99 the first 100, 100- what follows, "
        "-50 the last 50",
    )  # fmt: skip


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs cat` and return its exit status."""
    if printer.json:
        report_error("fs cat writes the bytes of files; --json cannot go with it")
        return Exit.USAGE
    failures = Failures()
    sys.stdout.flush()
    with session(options) as service:
        at_once = service.calls_at_once(*map(scheme_of, options.uris))
        places = expand_all(service, options.uris, failures)
        for outcome in Crew(at_once).run(lambda place: _begin(place, options.range), places):
            with failures.about(outcome.item.uri):
                _write_out(outcome.get())
    return failures.exit_code


class _Begun(NamedTuple):
    """A file whose first bytes have been read.

    Attributes:
        file: The open file.
        wanted: Which bytes of it are wanted, counted from its begin.
        beginning: The first of them.
    """

    file: RandomAccessFile
    wanted: ByteRange
    beginning: bytes


def _begin(place: Place, wanted: ByteRange) -> _Begun:
    file = place.filesystem.new_random_access_file(place.uri)
    try:
        start, end = wanted.within(place, file)
        length = _BEGINNING if end is None else min(_BEGINNING, end - start)
        return _Begun(file, ByteRange(start, end), file.read(start, length))
    except BaseException:
        file.close()
        raise


def _write_out(begun: _Begun) -> None:
    start, end = begun.wanted
    with begun.file as file:
        sys.stdout.buffer.write(begun.beginning)
        if len(begun.beginning) == _BEGINNING:
            for chunk in chunks(file, start + _BEGINNING, end):
                sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
