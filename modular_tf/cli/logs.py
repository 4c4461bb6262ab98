"""The structured log of a command, on standard error, when `-v`, `--log` or the environment ask."""

from __future__ import annotations

import os
import sys

from modular_tf.events.event_log import CRITICAL, ROOT, EventLog

VARIABLE = "MODULAR_TF_LOG"
OUTPUTS = ("pretty", "json", "off")


def set_up(output: str | None, verbosity: int) -> None:
    """Configure the log of the command, if it was requested.

    Args:
        output: One of `OUTPUTS`, None where the command line names none.
        verbosity: How often `-v` was given: once for outcomes, from twice on every step too.
    """
    from_environment = output is None and verbosity == 0
    if from_environment and not os.environ.get(VARIABLE):
        # What a user must know is in the result, and a log costs time.
        if "logging" in sys.modules:
            sys.modules["logging"].getLogger(ROOT).setLevel(CRITICAL)
        else:
            EventLog.default_level = CRITICAL
        return
    from modular_tf.service.log_output import configure_logging, follow_environment  # noqa: PLC0415  (likewise)

    if from_environment:
        follow_environment()
    else:
        configure_logging(output or "pretty", level="debug" if verbosity > 1 else "info")
