"""The structured log of a command, on standard error, when `-v` asks for it."""

from __future__ import annotations

import logging
import sys

_ROOT = "modular_tf"


def silence() -> None:
    """Write no log: what a user must know is in the result, and structlog is slow to load."""
    logging.getLogger(_ROOT).setLevel(logging.CRITICAL)


def show(verbosity: int) -> None:
    """Write outcomes to standard error, from `verbosity` 2 on every step too."""
    import structlog  # noqa: PLC0415  (the slowest import of the package)

    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger(_ROOT)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
