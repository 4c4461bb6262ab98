"""The structured log of a command, on standard error, when `-v`, `--log` or the environment ask."""

from __future__ import annotations

import logging
import os

VARIABLE = "MODULAR_TF_LOG"
OUTPUTS = ("pretty", "json", "off")


def set_up(output: str | None, verbosity: int) -> None:
    """Show the log, or nothing.

    Args:
        output: One of `OUTPUTS`, None where the command line names none.
        verbosity: How often `-v` was given: once for outcomes, from twice on every step too.
    """
    if output is None and verbosity == 0 and os.environ.get(VARIABLE):
        from modular_tf.log_output import follow_environment  # noqa: PLC0415  (see `_silence`)

        follow_environment()
    elif output == "off" or (output is None and verbosity == 0):
        _silence()
    else:
        from modular_tf.log_output import configure_logging  # noqa: PLC0415  (likewise)

        configure_logging(output or "pretty", level="debug" if verbosity > 1 else "info")


def _silence() -> None:
    """Write no log: what a user must know is in the result, and the log costs start-up time."""
    logging.getLogger("modular_tf").setLevel(logging.CRITICAL)
