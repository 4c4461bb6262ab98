"""Remove files, and with -r directories and all that is in them.

With --include or --exclude only files that are taken are removed, and no directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.removal import Removal, RemovalItem, RemovalRules
from modular_tf.cli.fs.selection import Selection, add_filters
from modular_tf.cli.fs.transfers import Transfers, add_transfer_options
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "what to remove")
    parser.add_argument("-r", dest="recursive", action="store_true", help="remove directories")
    parser.add_argument(
        "-n", "--dry-run", action="store_true",
        help="remove nothing, and report which files would be removed",
    )  # fmt: skip
    add_transfer_options(parser)
    add_filters(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs rm` and return its exit status."""
    failures = Failures()
    removed: list[str] = []

    def tell(item: RemovalItem) -> None:
        if printer.json and (options.dry_run or not item.path):
            removed.append(item.uri)
        elif options.dry_run:
            printer.row(("remove", item.uri))

    rules = RemovalRules(
        options.recursive, Selection(options.filters), is_rehearsal=options.dry_run
    )
    with session(options) as service:
        transfers: Transfers[RemovalItem] = Transfers(options, service, options.uris, failures)
        places = list(expand_all(service, options.uris, failures))
        Removal(transfers, rules, tell).run(map(RemovalItem, places))
    transfers.tell("to be removed" if options.dry_run else "removed")
    if printer.json:
        printer.json_object(
            removed=removed,
            totals=transfers.totals.as_object(),
            **({"dry_run": True} if options.dry_run else {}),
        )
    return failures.exit_code
