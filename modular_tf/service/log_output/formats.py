"""The forms in which events are written: one JSON object a line, or lines that people read."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

_NOT_PRETTY = ("logger", "written")  # the name of the event and the timestamp say as much


class JsonLines(logging.Formatter):
    """Writes a record as one line of ASCII: a JSON object with `timestamp` in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; values that JSON does not know are written as `str` does."""
        return json.dumps(_as_dictionary(record), default=str)


class PrettyLines(logging.Formatter):
    """Writes a record as structlog's console does, with the time in UTC.

    Values are quoted: what a plugin logs may hold escape sequences, which no terminal must obey.
    What is None is left out.
    """

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        import structlog  # noqa: PLC0415  (the slowest import of the package)

        self._render = structlog.dev.ConsoleRenderer(
            colors=colours, repr_native_str=True, sort_keys=False
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        values = _as_dictionary(record)
        shown = {k: v for k, v in values.items() if v is not None and k not in _NOT_PRETTY}
        return str(self._render(None, "", shown))


def _as_dictionary(record: logging.LogRecord) -> dict[str, Any]:
    """Return a record's event; a record of another logger has its message only."""
    values = getattr(record, "event", None)
    if not isinstance(values, dict):
        values = {"event": record.getMessage()}
    time = datetime.fromtimestamp(record.created, timezone.utc)
    return {
        "timestamp": time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "event": values["event"],
        "logger": record.name,
        **values,
    }
