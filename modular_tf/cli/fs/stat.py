"""Show kind, size and modification time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.arguments import add_human_readable, add_uris
from modular_tf.cli.fs.details import as_object, shown_size
from modular_tf.cli.fs.globbing import expand_all
from modular_tf.cli.fs.walking import Walk
from modular_tf.cli.session import session
from modular_tf.cli.text import when

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    add_uris(parser, "file or directory")
    add_human_readable(parser)


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf fs stat` and return its exit status."""
    failures = Failures()
    with session(options) as service:
        roots = Walk(service, failures, depth=0).roots(expand_all(service, options.uris, failures))
        files = [as_object(root.place, root.facts) for root in roots]
    if printer.json:
        printer.json_object(files=files)
    else:
        human = options.human_readable
        printer.table(("type", "size", "changed", "uri"), [_row(f, human=human) for f in files])
    return failures.exit_code


def _row(facts: dict[str, Any], *, human: bool) -> tuple[str, ...]:
    length = "" if facts["size"] is None else shown_size(facts["size"], human=human)
    return facts["type"], length, when(facts["mtime_ns"] or 0), facts["uri"]
