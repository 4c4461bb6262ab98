"""Show kind, size and modification time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.details import as_object
from modular_tf.cli.fs.place import Place
from modular_tf.cli.session import session
from modular_tf.cli.text import when

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "file or directory")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs stat` and return its exit status."""
    failures = Failures()
    files = []
    with session(options) as service:
        for uri in options.uris:
            with failures.about(uri):
                place = Place.of(service, uri)
                files.append(as_object(place, place.stat()))
    if printer.json:
        printer.json_object(files=files)
    else:
        rows = [(f["type"], f["size"], when(f["mtime_ns"] or 0), f["uri"]) for f in files]
        printer.table(("type", "size", "changed", "uri"), rows)
    return failures.exit_code
