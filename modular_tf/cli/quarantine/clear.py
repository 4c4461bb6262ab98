"""Release plugins from quarantine; the next process that finds them tries them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.quarantine.store import entries_named, open_store

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="*",
        help="a plugin's name, its path, or six or more digits of its SHA-256; by default all",
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf quarantine clear` and return its exit status."""
    store = open_store()
    failures = Failures()
    wanted = options.name
    entries = entries_named(store, wanted, failures) if wanted else store.entries()
    for entry in entries:
        store.release(entry.sha256)
    if printer.json:
        printer.json_object(cleared=[entry.as_dict() for entry in entries])
    else:
        printer.table(("cleared", "path"), [(entry.name, entry.path) for entry in entries])
    return failures.exit_code
