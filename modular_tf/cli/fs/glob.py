"""List what matches patterns: `*`, `?` and `[…]` within one level of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.globbing import matching_paths
from modular_tf.cli.fs.place import Place
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "patterns", metavar="PATTERN", nargs="+", help="a URI or path with wildcards; quote it"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs glob` and return its exit status."""
    failures = Failures()
    matches: list[str] = []
    with session(options) as service:
        for pattern in options.patterns:
            with failures.about(pattern):
                filesystem = Place.of(service, pattern).filesystem
                matches += matching_paths(filesystem, pattern, failures)
    if printer.json:
        printer.json_object(matches=matches)
    else:
        for match in matches:
            printer.line(match)
    return failures.exit_code or (Exit.DONE if matches else Exit.NOTHING)
