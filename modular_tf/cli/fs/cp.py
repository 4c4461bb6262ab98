"""Copy files, and with -r directories, between any two schemes and local paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_sources_and_target
from modular_tf.cli.fs.copying import copy, require_directory_for_several
from modular_tf.cli.fs.place import Place
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_sources_and_target(parser)
    parser.add_argument("-r", dest="recursive", action="store_true", help="copy directories")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs cp` and return its exit status."""
    failures = Failures()
    copied: list[dict[str, str]] = []
    with session(options) as service:
        with failures.about(options.target):
            target = Place.of(service, options.target)
            require_directory_for_several(options.uris, target)
        sources = [] if failures.count else options.uris
        for uri in sources:
            with failures.about(uri):
                source = Place.of(service, uri)
                done = copy(source, target, failures, recursive=options.recursive)
                copied.extend({"from": old.uri, "to": new.uri} for old, new in done)
    if printer.json:
        printer.json_object(copied=copied)
    return failures.exit_code
