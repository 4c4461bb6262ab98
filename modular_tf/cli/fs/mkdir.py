"""Create one or more directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.place import Place
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "directory to make")
    parser.add_argument(
        "-p", dest="parents", action="store_true", help="with those above it; it may exist already"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs mkdir` and return its exit status."""
    failures = Failures()
    made = []
    with session(options) as service:
        for uri in options.uris:
            with failures.about(uri):
                filesystem = Place.of(service, uri).filesystem
                parents = options.parents
                (filesystem.recursively_create_dir if parents else filesystem.create_dir)(uri)
                made.append(uri)
    if printer.json:
        printer.json_object(made=made)
    return failures.exit_code
