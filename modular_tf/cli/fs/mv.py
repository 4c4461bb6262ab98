"""Move or rename files and directories, also between schemes and local paths.

With --include or --exclude only files that are taken are moved, and directories stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_sources_and_target
from modular_tf.cli.fs.copying import CopyItem, Landings
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.moving import move_all
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.selection import Selection, add_filters
from modular_tf.cli.fs.transfers import Transfers, add_transfer_options
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_sources_and_target(parser)
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="move nothing, and report what would be moved"
    )
    add_transfer_options(parser)
    add_filters(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs mv` and return its exit status."""
    failures = Failures()
    moved: list[dict[str, str]] = []

    def tell(item: CopyItem) -> None:
        if printer.json:
            moved.append({"from": item.source.uri, "to": item.target.uri})
        elif options.dry_run:
            printer.row(("move", item.source.uri, item.target.uri))

    with session(options) as service:
        transfers: Transfers[CopyItem] = Transfers(
            options, service, [*options.uris, options.target], failures
        )
        sources = list(expand_all(service, options.uris, failures))
        is_several = len(options.uris) > 1 or len(sources) > 1
        items: list[CopyItem] = []
        with failures.about(options.target):
            landings = Landings(Place.of(service, options.target), is_several=is_several)
            items = landings.items(sources)
        selection = Selection(options.filters)
        move_all(transfers, items, tell, selection, is_rehearsal=options.dry_run)
    transfers.tell("to be moved" if options.dry_run else "moved")
    if printer.json:
        printer.json_object(
            moved=moved,
            totals=transfers.totals.as_object(),
            **({"dry_run": True} if options.dry_run else {}),
        )
    return failures.exit_code
