"""List what is in directories; a file is listed by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_human_readable, add_uris
from modular_tf.cli.fs.details import as_object, counted_directories, kind, shown_size
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.walking import Entry, Facts, Walk
from modular_tf.cli.session import session
from modular_tf.cli.text import counted, size, when

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "directory or file")
    parser.add_argument("-l", dest="long", action="store_true", help="with kind, size and time")
    add_human_readable(parser, "with -l: ")
    parser.add_argument(
        "-R", "--recursive", action="store_true", help="also list the directories that are found"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs ls` and return its exit status."""
    failures = Failures()
    with session(options) as service:
        depth = None if options.recursive else 1
        kinds = Facts.KIND if options.recursive else Facts.NONE
        facts = Facts.STATISTICS if options.long or printer.json else kinds
        walk = Walk(service, failures, depth=depth, facts=facts)
        roots = walk.roots(expand_all(service, options.uris, failures))
        if printer.json:
            printer.json_object(listings=_listings(walk.through(roots)))
        else:
            headings = options.recursive or max(len(options.uris), len(roots)) > 1
            _show(walk, roots, _Lines(options, printer, headings=headings))
    return failures.exit_code


def _listings(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    listings = []
    for entry in entries:
        listed = [entry] if entry.depth == 0 and not entry.is_directory else entry.children
        if listed is not None:
            found = [as_object(one.place, one.facts) for one in listed]
            listings.append({"uri": entry.place.uri, "entries": found})
    return listings


def _show(walk: Walk, roots: list[Entry], lines: _Lines) -> None:
    """Show the files that were named, then the directories."""
    files = [root for root in roots if not root.is_directory]
    if files:
        lines.entries(files, [file.place.uri for file in files])
    for entry in walk.through([root for root in roots if root.is_directory]):
        if entry.children is not None:
            lines.heading(entry.place.uri)
            lines.entries(entry.children, [child.place.name for child in entry.children])
    lines.total()


class _Lines:
    """What one command lists, as lines.

    Args:
        options: The options of the command.
        printer: Where to write.
        headings: Whether directories have headings.
    """

    def __init__(self, options: Namespace, printer: Printer, *, headings: bool) -> None:
        self._long = options.long
        self._human = options.human_readable
        self._printer = printer
        self._headings = headings
        self._is_first = True
        self._files = self._directories = self._bytes = 0

    def heading(self, uri: str) -> None:
        """Write the heading of a directory; a person gets a blank line between listings."""
        if self._headings:
            if self._printer.terminal and not self._is_first:
                self._printer.line()
            self._printer.line(f"{uri}:")

    def entries(self, entries: list[Entry], names: list[str]) -> None:
        """Write entries by these names."""
        self._is_first = False
        if not self._long:
            for name in names:
                self._printer.line(name)
            return
        rows = [self._row(one, name) for one, name in zip(entries, names, strict=True)]
        self._printer.table(("type", "size", "changed", "name"), rows)
        n_directories = sum(one.is_directory for one in entries)
        self._directories += n_directories
        self._files += len(entries) - n_directories
        self._bytes += sum(one.size for one in entries)

    def _row(self, entry: Entry, name: str) -> tuple[str, ...]:
        facts = entry.facts
        is_file = facts is not None and not facts.is_directory
        length = shown_size(entry.size, human=self._human) if is_file else ""
        return kind(facts), length, when(facts.mtime_nsec if facts else 0), name

    def total(self) -> None:
        """Write, for a person who wants sizes, how much it was altogether."""
        if self._long and self._printer.terminal:
            counts = [counted(self._files, "file"), counted_directories(self._directories)]
            self._printer.line(f"total: {', '.join(counts)}, {size(self._bytes)}")
