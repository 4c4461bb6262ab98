"""Copy what a directory has and another one lacks, or has in another size or older.

Times are those that the two stores tell; a file that both have in one size is copied if the source
is newer by a second or more, or never with --size-only. Nothing is deleted without --delete, nor
where anything failed, or the source is missing or empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.copying import CopyItem, CopyRules
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.removal import Removal, RemovalItem, RemovalRules
from modular_tf.cli.fs.selection import Selection, add_filters
from modular_tf.cli.fs.syncing import Syncing
from modular_tf.cli.fs.transfers import Transfers, add_transfer_options
from modular_tf.cli.session import session
from modular_tf.errors import FailedPreconditionError
from modular_tf.filesystem.overlap import Overlap, overlap

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("source", metavar="SOURCE", help="a directory: a URI or a local path")
    parser.add_argument("target", metavar="TARGET", help="what it shall be like; may be missing")
    parser.add_argument(
        "--delete", action="store_true",
        help="also delete what only the target has; what filters leave out stays",
    )  # fmt: skip
    parser.add_argument("--size-only", action="store_true", help="take files of one size for equal")
    parser.add_argument(
        "-n", "--dry-run", action="store_true",
        help="change nothing, and report what would be copied and deleted",
    )  # fmt: skip
    add_transfer_options(parser)
    add_filters(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs sync` and return its exit status."""
    failures = Failures()
    verb = _Sync(options, printer)
    with session(options) as service:
        transfers: Transfers[Any] = Transfers(
            options, service, [options.source, options.target], failures
        )
        with failures.about(options.source):
            source = Place.of(service, options.source)
            verb.run(transfers, source, Place.of(service, options.target))
    transfers.tell("to be copied" if options.dry_run else "copied")
    if printer.json:
        printer.json_object(
            copied=verb.copied,
            deleted=verb.deleted,
            totals=transfers.totals.as_object(),
            **({"dry_run": True} if options.dry_run else {}),
        )
    return failures.exit_code


class _Sync:
    """One run of the verb, and what it did."""

    def __init__(self, options: Namespace, printer: Printer) -> None:
        self._options = options
        self._printer = printer
        self._selection = Selection(options.filters)
        self.copied: list[dict[str, str]] = []
        self.deleted: list[str] = []

    def run(self, transfers: Transfers[Any], source: Place, target: Place) -> None:
        """Copy, then delete if that is wanted and nothing failed."""
        options = self._options
        if options.delete and overlap(target.pair, source.pair) is Overlap.HOLDS:
            raise FailedPreconditionError(
                f"{target.uri} holds it, and --delete would delete it; choose another target"
            )
        rules = CopyRules(recursive=True, selection=self._selection, is_rehearsal=options.dry_run)
        syncing = Syncing(
            transfers,
            rules,
            self._tell_copied,
            size_only=options.size_only,
            is_mirror=options.delete,
        )
        syncing.run(source, target)
        if options.delete:
            self._delete_surplus(transfers, syncing, source, target)
            for uri, left_out in syncing.staying:
                transfers.tell_left_out(uri, left_out)

    def _delete_surplus(
        self, transfers: Transfers[Any], syncing: Syncing, source: Place, target: Place
    ) -> None:
        for link in syncing.behind_links:
            transfers.failures.add("is a link to a directory; nothing in it was deleted", link.uri)
        if not syncing.surplus:
            return
        if transfers.failures.count:
            transfers.failures.add("nothing was deleted, since not all went well", target.uri)
        elif syncing.is_source_empty:
            transfers.failures.add(
                "is empty, so nothing was deleted; fs rm -r empties the target", source.uri
            )
        else:
            self._delete(transfers, syncing.surplus)

    def _delete(self, transfers: Transfers[Any], surplus: list[RemovalItem]) -> None:
        rules = RemovalRules(
            recursive=True, selection=self._selection, is_rehearsal=self._options.dry_run
        )
        copied = transfers.totals.files
        Removal(transfers, rules, self._tell_deleted).run(surplus)
        transfers.totals.files = transfers.totals.known = copied

    def _tell_copied(self, item: CopyItem) -> None:
        if self._printer.json:
            self.copied.append({"from": item.source.uri, "to": item.target.uri})
        elif self._options.dry_run:
            self._printer.row(("copy", item.source.uri, item.target.uri))

    def _tell_deleted(self, item: RemovalItem) -> None:
        if self._printer.json:
            self.deleted.append(item.uri)
        elif self._options.dry_run:
            self._printer.row(("delete", item.uri))
