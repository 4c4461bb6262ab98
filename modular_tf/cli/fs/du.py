"""Show how many bytes the files in directories have, and in those below, as `du` does.

A directory comes after what it holds, so the last line of each tree is its total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_human_readable, add_uris, count
from modular_tf.cli.fs.details import shown_size
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.walking import Walk
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.fs.walking import Entry
    from modular_tf.cli.printer import Printer

_SIZE_COLUMNS = 12


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "directory or file")
    add_human_readable(parser)
    parser.add_argument("-s", "--summarize", action="store_true", help="only the total of each URI")
    parser.add_argument(
        "--max-depth", type=count, metavar="N", help="only directories up to N levels down"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs du` and return its exit status."""
    failures = Failures()
    deepest = 0 if options.summarize else options.max_depth
    usages = []
    with session(options) as service:
        walk = Walk(service, failures)
        roots = walk.roots(expand_all(service, options.uris, failures))
        for usage in usages_of(walk.through(roots)):
            if deepest is not None and usage.depth > deepest:
                continue
            if printer.json:
                usages.append({"uri": usage.uri, "size": usage.size, "files": usage.files})
                continue
            amount = shown_size(usage.size, human=options.human_readable)
            shown = amount.rjust(_SIZE_COLUMNS) if printer.terminal else amount
            printer.row((shown, usage.uri))
    if printer.json:
        printer.json_object(usages=usages)
    return failures.exit_code


@dataclass(slots=True)
class Usage:
    """What a directory with all below it has, or a file by itself.

    Attributes:
        uri: Where it is.
        depth: How many levels it lies below where the walk began.
        size: Bytes of its files.
        files: The number of them.
    """

    uri: str
    depth: int
    size: int = 0
    files: int = 0

    def add(self, size: int, files: int) -> None:
        """Add what lies in it."""
        self.size += size
        self.files += files


def usages_of(entries: Iterable[Entry]) -> Iterator[Usage]:
    """Yield the usage of each directory of walks, after those in it, and of files walked from."""
    around: list[Usage] = []
    for entry in entries:
        yield from _left(around, entry.depth)
        if entry.is_directory:
            around.append(Usage(entry.place.uri, entry.depth))
        elif around:
            around[-1].add(entry.size, 1)
        else:
            yield Usage(entry.place.uri, entry.depth, entry.size, 1)
    yield from _left(around, 0)


def _left(around: list[Usage], depth: int) -> Iterator[Usage]:
    """Yield the directories that a walk has left when it comes to an entry of this depth."""
    while around and around[-1].depth >= depth:
        usage = around.pop()
        if around:
            around[-1].add(usage.size, usage.files)
        yield usage
