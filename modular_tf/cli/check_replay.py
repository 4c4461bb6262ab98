"""Replaying a random sequence that a check has found, in this process: `check --replay`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.check.candidates import candidates_of
from modular_tf.check.expectation import Blocked
from modular_tf.check.sequences.program import Replay
from modular_tf.check.sequences.replaying import replay
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.text import printable
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import probe
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.settings import CheckSettings
    from modular_tf.cli.printer import Printer


def execute(token: str, targets: Sequence[str], settings: CheckSettings, printer: Printer) -> Exit:
    """Replay the sequence; each call is written before it is made, so that a crash names it.

    Raises:
        ConfigError: The token is none, or not one library is named.
    """
    found = Replay.from_token(token)
    candidates, _ = candidates_of(targets)
    if len(candidates) != 1:
        raise ConfigError(f"--replay works on one library, found {len(candidates)}")
    library = probe(candidates[0], host_exports())
    try:
        failure = replay(found, library, settings, _tell)
    except Blocked as blocked:
        report_error(str(blocked))
        return Exit.NOTHING
    if printer.json:
        printer.json_object(failure=None if failure is None else failure.as_dict())
    elif failure is None:
        printer.line(f"nothing is wrong in these {len(found.program.steps)} steps")
    else:
        printer.line(failure.message)
        printer.facts({"expected": failure.expected, "found": failure.found})
    return Exit.DONE if failure is None else Exit.NO


def _tell(call: str) -> None:
    sys.stderr.write(printable(call) + "\n")
    sys.stderr.flush()
