"""Write the last lines or bytes of files to standard output; only these are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.byte_range import length_of
from modular_tf.cli.fs.ends import bytes_between, last_lines
from modular_tf.cli.fs.parts import add_part_options, write_parts

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.fs.place import Place
    from modular_tf.cli.printer import Printer
    from modular_tf.filesystem.files import RandomAccessFile


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "file")
    add_part_options(parser, "last")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs tail` and return its exit status."""

    def part(place: Place, file: RandomAccessFile) -> Iterator[bytes | memoryview]:
        length = length_of(place, file)
        if options.bytes is not None:
            return bytes_between(file, max(0, length - options.bytes), length)
        return last_lines(file, options.lines, length)

    return write_parts(options, printer, part)
