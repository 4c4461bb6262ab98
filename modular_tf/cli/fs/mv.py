"""Move or rename files and directories, also between schemes and local paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_sources_and_target
from modular_tf.cli.fs.copying import CopyItem, Landings
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.moving import move_all
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.transfers import Transfers, add_transfer_options
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_sources_and_target(parser)
    add_transfer_options(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs mv` and return its exit status."""
    failures = Failures()
    moved: list[dict[str, str]] = []

    def tell(item: CopyItem) -> None:
        moved.append({"from": item.source.uri, "to": item.target.uri})

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
        move_all(transfers, items, tell)
    transfers.tell("moved")
    if printer.json:
        printer.json_object(moved=moved, totals=transfers.totals.as_object())
    return failures.exit_code
