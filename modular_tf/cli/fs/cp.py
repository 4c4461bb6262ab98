"""Copy files, and with -r directories, between any two schemes and local paths.

`-` as a source is standard input, and as the target standard output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures, report_error
from modular_tf.cli.fs.arguments import add_sources_and_target
from modular_tf.cli.fs.copying import Copying, CopyItem, CopyRules, Landings
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.pipes import STANDARD, copy_in, copy_out
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.selection import Selection, add_filters
from modular_tf.cli.fs.transfers import Transfers, add_transfer_options
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.service.service import PluginService


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_sources_and_target(parser)
    parser.add_argument("-r", dest="recursive", action="store_true", help="copy directories")
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="copy nothing, and report what would be copied"
    )
    add_transfer_options(parser)
    add_filters(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs cp` and return its exit status."""
    if wrong := _misuse(options, printer):
        report_error(wrong)
        return Exit.USAGE
    failures = Failures()
    if STANDARD in (*options.uris, options.target):
        options.jobs = 1  # one stream of bytes has one order
    with session(options) as service:
        transfers: Transfers[CopyItem] = Transfers(
            options, service, [*options.uris, options.target], failures
        )
        copied: list[CopyItem] = []
        if options.target == STANDARD:
            copy_out(transfers, service, options.uris)
        elif STANDARD in options.uris:
            copy_in(transfers, service, options.target)
        else:
            copied = _copy(transfers, service, options, printer)
    transfers.tell("to be copied" if options.dry_run else "copied")
    if printer.json:
        printer.json_object(
            copied=[{"from": item.source.uri, "to": item.target.uri} for item in copied],
            totals=transfers.totals.as_object(),
            **({"dry_run": True} if options.dry_run else {}),
        )
    return failures.exit_code


def _misuse(options: Namespace, printer: Printer) -> str:
    """Return what makes no sense with standard input or output; empty for nothing."""
    is_in, is_out = STANDARD in options.uris, options.target == STANDARD
    if not (is_in or is_out):
        return ""
    if is_in and (is_out or len(options.uris) > 1):
        return "standard input (-) goes to one target, and is the only source"
    if options.recursive or options.dry_run or options.filters:
        return "- is one stream of bytes: -r, -n and filters cannot go with it"
    return (
        "the bytes go to standard output; --json cannot go with it"
        if is_out and printer.json
        else ""
    )


def _copy(
    transfers: Transfers[CopyItem], service: PluginService, options: Namespace, printer: Printer
) -> list[CopyItem]:
    sources = list(expand_all(service, options.uris, transfers.failures))
    is_several = len(options.uris) > 1 or len(sources) > 1
    items: list[CopyItem] = []
    with transfers.failures.about(options.target):
        landings = Landings(Place.of(service, options.target), is_several=is_several)
        items = landings.items(sources)
    copied: list[CopyItem] = []

    def tell(item: CopyItem) -> None:
        if printer.json:
            copied.append(item)
        elif options.dry_run:
            printer.row(("copy", item.source.uri, item.target.uri))

    rules = CopyRules(
        options.recursive,
        Selection(options.filters),
        is_rehearsal=options.dry_run,
    )
    Copying(transfers, rules, tell).run(items)
    return copied
