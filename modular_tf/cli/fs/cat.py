"""Write files to standard output, byte for byte."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures, report_error
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.stream import chunks
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "file")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs cat` and return its exit status."""
    if printer.json:
        report_error("fs cat writes the bytes of files; --json cannot go with it")
        return Exit.USAGE
    failures = Failures()
    sys.stdout.flush()
    with session(options) as service:
        for uri in options.uris:
            with failures.about(uri):
                _write_out(Place.of(service, uri))
    return failures.exit_code


def _write_out(place: Place) -> None:
    with place.filesystem.new_random_access_file(place.uri) as file:
        for chunk in chunks(file):
            sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
