"""Remove files, and with -r directories and all that is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.removal import remove_tree
from modular_tf.cli.session import session
from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "what to remove")
    parser.add_argument("-r", dest="recursive", action="store_true", help="remove directories")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs rm` and return its exit status."""
    failures = Failures()
    removed = []
    with session(options) as service:
        for uri in options.uris:
            with failures.about(uri):
                _remove(Place.of(service, uri), recursive=options.recursive)
                removed.append(uri)
    if printer.json:
        printer.json_object(removed=removed)
    return failures.exit_code


def _remove(place: Place, *, recursive: bool) -> None:
    if not place.is_directory():
        place.filesystem.delete_file(place.uri)
    elif recursive:
        remove_tree(place)
    else:
        raise FailedPreconditionError("is a directory; remove it with -r", path=place.uri)
