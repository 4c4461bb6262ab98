"""Structured log events: a constant dotted name and key/values, silent until configured.

structlog is the most expensive import the package has (tens of milliseconds), so it is
loaded at the first event that somebody listens to.
"""

from __future__ import annotations

import logging
from typing import Any

_ROOT = "modular_tf"


class EventLog:
    """Write events of one part of the package to the standard `logging` tree, through structlog.

    [any thread]. Info for outcomes, warning when something that the user
    installed is not used.
    """

    def __init__(self, name: str) -> None:
        self._stdlib = logging.getLogger(f"{_ROOT}.{name}")
        self._bound: Any = None

    def info(self, event: str, **values: object) -> None:
        """Log an outcome."""
        self._write(logging.INFO, event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log something that the user should act on."""
        self._write(logging.WARNING, event, values)

    def _write(self, level: int, event: str, values: dict[str, object]) -> None:
        if not self._stdlib.isEnabledFor(level):
            return
        if self._bound is None:
            import structlog  # noqa: PLC0415  (costly: see the module's docstring)

            self._bound = structlog.wrap_logger(self._stdlib)
        self._bound.log(level, event, **values)


# A library says nothing unless the application asks: a record that nobody handles is dropped.
logging.getLogger(_ROOT).addHandler(logging.NullHandler())
