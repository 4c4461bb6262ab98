"""List everything in whole trees, each directory before what it holds."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.details import kind, stat_listed
from modular_tf.cli.fs.place import Place
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from modular_tf.cli.printer import Printer
    from modular_tf.filesystem.statistics import FileStatistics
    from modular_tf.service.service import PluginService

_KINDS = {"f": "file", "d": "directory"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "where to begin")
    parser.add_argument("--name", metavar="PATTERN", default="*", help="only names that match")
    parser.add_argument("--type", choices=_KINDS, help="only files (f) or directories (d)")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs find` and return its exit status."""
    failures = Failures()
    found = []
    with session(options) as service:
        for uri, what in _search(service, options, failures):
            found.append({"uri": uri, "type": what})
            if not printer.json:
                printer.line(uri)
    if printer.json:
        printer.json_object(found=found)
    return failures.exit_code or (Exit.DONE if found else Exit.NOTHING)


def _search(
    service: PluginService, options: Namespace, failures: Failures
) -> Iterator[tuple[str, str]]:
    for uri in options.uris:
        with failures.about(uri):
            for place, what in _walk(Place.of(service, uri), failures):
                fits = fnmatchcase(place.name, options.name)
                if fits and what == _KINDS.get(options.type, what):
                    yield place.uri, what


def _walk(place: Place, failures: Failures) -> Iterator[tuple[Place, str]]:
    """Yield a place and everything below it; a directory that cannot be read is reported."""
    yield from _walk_known(place, place.stat(), failures)


def _walk_known(
    place: Place, facts: FileStatistics | None, failures: Failures
) -> Iterator[tuple[Place, str]]:
    yield place, kind(facts)
    if facts is None or not facts.is_directory:
        return
    with failures.about(place.uri):
        for child in place.children():
            yield from _walk_known(child, stat_listed(child), failures)
