"""Draw directories as trees; `-l` and `-h` add the sizes of files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_human_readable, add_uris, count
from modular_tf.cli.fs.details import as_object, counted_directories, shown_size
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.walking import Facts, Walk
from modular_tf.cli.session import session
from modular_tf.cli.text import counted

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.fs.walking import Entry
    from modular_tf.cli.printer import Printer

_LINES = ("├── ", "└── ", "│   ", "    ")
_PLAIN_LINES = ("|-- ", "`-- ", "|   ", "    ")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "directory")
    parser.add_argument("-L", "--max-depth", type=count, metavar="N", help="only N levels down")
    parser.add_argument("-d", dest="directories", action="store_true", help="only directories")
    parser.add_argument("-l", dest="long", action="store_true", help="with the sizes of files")
    add_human_readable(parser, "with ")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs tree` and return its exit status."""
    failures = Failures()
    with session(options) as service:
        with_sizes = options.long or options.human_readable or printer.json
        facts = Facts.STATISTICS if with_sizes else Facts.KIND
        walk = Walk(service, failures, depth=options.max_depth, facts=facts)
        entries = walk.through(walk.roots(expand_all(service, options.uris, failures)))
        if printer.json:
            printer.json_object(trees=_as_objects(entries, only_directories=options.directories))
        else:
            _draw(entries, options, printer)
    return failures.exit_code


def _as_objects(entries: Iterable[Entry], *, only_directories: bool) -> list[dict[str, Any]]:
    """Return each tree as a list of what is in it, with depths: a tree may be too deep to nest."""
    trees: list[dict[str, Any]] = []
    for entry in entries:
        facts = as_object(entry.place, entry.facts)
        if entry.depth == 0:
            trees.append({**facts, "entries": []})
        elif entry.is_directory or not only_directories:
            trees[-1]["entries"].append({**facts, "depth": entry.depth})
    return trees


def _draw(entries: Iterable[Entry], options: Namespace, printer: Printer) -> None:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    drawing = _Drawing(_LINES if encoding == "utf8" else _PLAIN_LINES)
    n_files = n_directories = 0
    for entry in entries:
        if entry.is_directory:
            n_directories += 1
        elif options.directories:
            continue
        else:
            n_files += 1
        shown = [c for c in entry.children or () if c.is_directory or not options.directories]
        printer.line(f"{drawing.branch(entry.depth, len(shown))}{_label(entry, options)}")
    if printer.terminal:
        printer.line()
        files = [] if options.directories else [counted(n_files, "file")]
        printer.line(", ".join([counted_directories(n_directories), *files]))


def _label(entry: Entry, options: Namespace) -> str:
    name = entry.place.name if entry.depth else entry.place.uri
    with_size = (options.long or options.human_readable) and entry.facts and not entry.is_directory
    return (
        f"{name}  [{shown_size(entry.size, human=options.human_readable)}]" if with_size else name
    )


class _Drawing:
    """The lines to the left of names.

    Args:
        lines: What leads to a name and to the last one of a directory, and what goes past them.
    """

    def __init__(self, lines: tuple[str, str, str, str]) -> None:
        self._to_name, self._to_last, self._past_name, self._past_last = lines
        self._to_come: list[int] = []  # in each directory around, outermost first

    def branch(self, depth: int, n_children: int) -> str:
        """Return the lines of the next entry, which has this many children to be drawn."""
        del self._to_come[depth:]
        lines = ""
        if depth:
            self._to_come[-1] -= 1
            around = [self._past_name if n else self._past_last for n in self._to_come[:-1]]
            lines = "".join(around) + (self._to_name if self._to_come[-1] else self._to_last)
        self._to_come.append(n_children)
        return lines
