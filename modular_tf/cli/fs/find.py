"""List everything in whole trees, each directory before what it holds.

All conditions that are given must hold. Sizes may have units: 64K, 10M, 1.5G.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris, byte_count, count
from modular_tf.cli.fs.details import kind
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.walking import Facts, Walk
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from modular_tf.cli.fs.walking import Entry
    from modular_tf.cli.printer import Printer
    from modular_tf.service.service import PluginService

_KINDS = {"f": "file", "d": "directory"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "where to begin")
    parser.add_argument("--name", metavar="PATTERN", default="*", help="only names that match")
    parser.add_argument("--type", choices=_KINDS, help="only files (f) or directories (d)")
    parser.add_argument(
        "--min-size", type=byte_count, metavar="SIZE", help="only files of at least this size"
    )
    parser.add_argument(
        "--max-size", type=byte_count, metavar="SIZE", help="only files of at most this size"
    )
    parser.add_argument("--newer", metavar="URI", help="only what changed after this one did")
    parser.add_argument("--max-depth", type=count, metavar="N", help="no more than N levels down")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs find` and return its exit status."""
    failures = Failures()
    found = []
    with session(options) as service:
        facts = _facts_for(options, with_kinds=printer.json)
        for entry in _search(service, options, failures, facts):
            uri = entry.place.uri
            found.append({"uri": uri, "type": kind(entry.facts)})
            if not printer.json:
                printer.line(uri)
    if printer.json:
        printer.json_object(found=found)
    return failures.exit_code or (Exit.DONE if found else Exit.NOTHING)


def _facts_for(options: Namespace, *, with_kinds: bool) -> Facts:
    """Return what the conditions, the output and the way down need to know of each name."""
    if options.newer is not None or options.min_size is not None or options.max_size is not None:
        return Facts.STATISTICS
    is_flat = options.max_depth == 1 and options.type is None and not with_kinds
    return Facts.NONE if is_flat else Facts.KIND


def _search(
    service: PluginService, options: Namespace, failures: Failures, facts: Facts
) -> Iterator[Entry]:
    fits = _Conditions(options, None)
    if options.newer is not None:
        with failures.about(options.newer):
            fits = _Conditions(options, Place.of(service, options.newer).stat().mtime_nsec)
        if failures.count:
            return
    walk = Walk(service, failures, depth=options.max_depth, facts=facts)
    roots = walk.roots(expand_all(service, options.uris, failures))
    yield from filter(fits, walk.through(roots))


class _Conditions:
    """What the options ask of an entry.

    Args:
        options: The options of the command.
        after: Nanoseconds since 1970 that an entry must have changed after; None for any time.
    """

    def __init__(self, options: Namespace, after: int | None) -> None:
        self._name = options.name
        self._kind = _KINDS.get(options.type)
        self._min_size = options.min_size
        self._max_size = options.max_size
        self._after = after

    def __call__(self, entry: Entry) -> bool:
        """Return whether all of them hold."""
        return (
            fnmatchcase(entry.place.name, self._name)
            and self._kind in {None, kind(entry.facts)}
            and self._has_size(entry)
            and self._is_new(entry)
        )

    def _has_size(self, entry: Entry) -> bool:
        if self._min_size is None and self._max_size is None:
            return True
        if entry.facts is None or entry.is_directory:
            return False
        is_large = self._min_size is None or entry.size >= self._min_size
        return is_large and (self._max_size is None or entry.size <= self._max_size)

    def _is_new(self, entry: Entry) -> bool:
        if self._after is None:
            return True
        return entry.facts is not None and entry.facts.mtime_nsec > self._after
