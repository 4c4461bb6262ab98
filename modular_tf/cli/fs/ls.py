"""List what is in directories; a file is listed by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_uris
from modular_tf.cli.fs.details import as_object, stat_all_listed
from modular_tf.cli.fs.place import Place
from modular_tf.cli.session import session
from modular_tf.cli.text import size, when

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "directory or file")
    parser.add_argument("-l", dest="long", action="store_true", help="with kind, size and time")
    parser.add_argument(
        "-h", "--human-readable", action="store_true", help="with -l: sizes as 1.5 KiB or 23 MiB"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs ls` and return its exit status."""
    failures = Failures()
    listings = []
    with session(options) as service:
        for uri in options.uris:
            with failures.about(uri):
                listings.append(_listed(Place.of(service, uri), options, printer))
    if printer.json:
        printer.json_object(listings=listings)
    return failures.exit_code


def _listed(place: Place, options: Namespace, printer: Printer) -> dict[str, Any]:
    is_directory = place.stat().is_directory
    found = place.children() if is_directory else [place]
    if printer.json or options.long:
        entries = [
            as_object(one, facts) for one, facts in zip(found, stat_all_listed(found), strict=True)
        ]
        if not printer.json:
            if options.human_readable:
                entries = [{**e, "size": e["size"] and size(e["size"])} for e in entries]
            _show_long(entries, printer, place.uri if len(options.uris) > 1 else None)
        return {"uri": place.uri, "entries": entries}
    if is_directory and len(options.uris) > 1:
        printer.line(f"{place.uri}:")
    for one in found:
        printer.line(one.name if is_directory else one.uri)
    return {}


def _show_long(entries: list[dict[str, Any]], printer: Printer, heading: str | None) -> None:
    if heading is not None:
        printer.line(f"{heading}:")
    rows = [(e["type"], e["size"], when(e["mtime_ns"] or 0), e["name"]) for e in entries]
    printer.table(("type", "size", "changed", "name"), rows)
