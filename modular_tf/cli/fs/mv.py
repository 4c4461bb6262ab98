"""Move or rename files and directories, also between schemes and local paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_sources_and_target
from modular_tf.cli.fs.copying import require_directory_for_several
from modular_tf.cli.fs.moving import move_directory, move_file
from modular_tf.cli.fs.place import Place, destination_place
from modular_tf.cli.fs.stream import refuse_overlap
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_sources_and_target(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs mv` and return its exit status."""
    failures = Failures()
    moved = []
    with session(options) as service:
        with failures.about(options.target):
            target = Place.of(service, options.target)
            require_directory_for_several(options.uris, target)
        sources = [] if failures.count else options.uris
        for uri in sources:
            with failures.about(uri):
                moved.append({"from": uri, "to": _move(Place.of(service, uri), target).uri})
    if printer.json:
        printer.json_object(moved=moved)
    return failures.exit_code


def _move(source: Place, target: Place) -> Place:
    is_directory = source.stat().is_directory
    landing = destination_place(source, target)
    refuse_overlap(source, landing)
    move = move_directory if is_directory else move_file
    move(source, landing)
    return landing
