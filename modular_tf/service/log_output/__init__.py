"""Output of the structured log: whether it is shown, where, and in which form.

`listener` collects the messages of plugins for it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.discovery.privileges import is_privileged
from modular_tf.events import EventLog
from modular_tf.events.event_log import DEBUG, ERROR, INFO, ROOT, WARNING
from modular_tf.service.log_output.listener import listener as _listener  # beside the module

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping
    from typing import TextIO

__all__ = ["LEVELS", "OUTPUTS", "VARIABLE", "configure_logging", "follow_environment"]

VARIABLE = "MODULAR_TF_LOG"
OUTPUTS = ("pretty", "json", "records", "off")
LEVELS = {
    "debug": DEBUG,
    "info": INFO,
    "warning": WARNING,
    "error": ERROR,
}
_log = EventLog("log_output")
_lock = ForkLock()
_own_handlers: list[logging.Handler] = []  # one, or none
_decided: list[str] = []  # the environment is followed once, and never after a call


def configure_logging(
    output: str = "pretty", *, level: str = "info", stream: TextIO | None = None
) -> None:
    """Set the output of this package's log, with plugins' own messages. [any thread]

    Until this is called the package is silent, unless the application has given a handler or a
    level to the logger `modular_tf`, and plugins write to standard error as TensorFlow's do.
    A second call replaces what the first one decided.

    Args:
        output: "pretty" for lines that people read; "json" for one JSON object a line; "records"
            to write nothing here and leave the events, plugins' messages among them, to the
            application's own `logging` or structlog; "off" to show nothing and leave plugins to
            standard error.
        level: The lowest level that counts: "debug", "info", "warning" or "error".
        stream: Where "pretty" and "json" write to. Default: standard error. It stays the
            caller's.

    Raises:
        ValueError: `output` or `level` is none of these.
    """
    _check("output", output, OUTPUTS)
    _check("level", level, LEVELS)
    with _lock:
        _decided.append(output)
        try:
            _listener.stop()  # what was heard so far belongs to the old output
            _show(output, LEVELS[level], stream or sys.stderr)
            if output != "off":
                _listener.listen(LEVELS[level])
        except BaseException:  # an interrupt: the environment counts as before
            _decided.pop()
            raise


def _show(output: str, level: int, stream: TextIO) -> None:
    """Replace or remove this package's handler."""
    import logging  # noqa: PLC0415  (6 ms; most commands show no log)

    logger = logging.getLogger(ROOT)
    while _own_handlers:
        logger.removeHandler(_own_handlers.pop())
    EventLog.shown_by_us = output in {"pretty", "json"}
    logger.propagate = not EventLog.shown_by_us
    logger.setLevel(logging.NOTSET if output == "off" else level)
    if EventLog.shown_by_us:
        _own_handlers.append(_handler(output, stream))
        logger.addHandler(_own_handlers[0])


def _check(name: str, value: str, known: tuple[str, ...] | Mapping[str, int]) -> None:
    if value not in known:
        raise ValueError(f"{name}: expected one of {list(known)}, found {value!r}")


def _handler(output: str, stream: TextIO) -> logging.Handler:
    from logging import StreamHandler  # noqa: PLC0415  (likewise)

    from modular_tf.service.log_output.formats import JsonLines, PrettyLines  # noqa: PLC0415  (likewise)

    handler = StreamHandler(stream)
    colours = output == "pretty" and stream.isatty() and "NO_COLOR" not in os.environ
    handler.setFormatter(JsonLines() if output == "json" else PrettyLines(colours=colours))
    return handler


def follow_environment(environment: Mapping[str, str] | None = None) -> None:
    """Configure the log by `MODULAR_TF_LOG`, `OUTPUT` or `OUTPUT:LEVEL`, unless it is configured.

    What cannot be understood counts as "pretty", and is the first event there: who sets the
    variable wants to see something. A process with rights that its user lacks ignores the variable.
    """
    said = (os.environ if environment is None else environment).get(VARIABLE)
    if not said or _decided or is_privileged():
        return
    output, _, level = said.partition(":")
    try:
        configure_logging(output, level=level or "info")
    except ValueError:
        configure_logging()
        _log.warning("environment.misread", variable=VARIABLE, value=said)
