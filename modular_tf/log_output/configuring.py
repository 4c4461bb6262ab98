"""`configure_logging`: whether the structured log is shown, where, and in which form."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from modular_tf.discovery.search_paths import is_privileged
from modular_tf.events import EventLog
from modular_tf.events.event_log import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

VARIABLE = "MODULAR_TF_LOG"
OUTPUTS = ("pretty", "json", "records", "off")
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_log = EventLog("log_output")
_logger = logging.getLogger(ROOT)
_own_handlers: list[logging.Handler] = []  # one, or none
_decided: list[str] = []  # the environment is followed once, and never after a call


def configure_logging(
    output: str = "pretty", *, level: str = "info", stream: TextIO | None = None
) -> None:
    """Decide what becomes of this package's log, plugins' own messages included. [any thread]

    Until this is called the package is silent, unless the application has given a handler or a
    level to the logger `modular_tf`, and plugins write to standard error as TensorFlow's do.
    A second call replaces what the first one decided.

    Args:
        output: "pretty" for lines that people read; "json" for one JSON object a line; "records"
            to write nothing here and leave the events, plugins' messages among them, to the
            application's own `logging` or structlog; "off" for the state before the first call.
        level: The lowest level that counts: "debug", "info", "warning" or "error".
        stream: Where "pretty" and "json" write to. Default: standard error. It stays the
            caller's.

    Raises:
        ValueError: `output` or `level` is none of these.
    """
    _check("output", output, OUTPUTS)
    _check("level", level, LEVELS)
    from modular_tf.log_output.listener import listener  # noqa: PLC0415  (loads the native core)

    _decided.append(output)
    listener.stop()  # what was heard so far belongs to the old output
    while _own_handlers:
        _logger.removeHandler(_own_handlers.pop())
    _logger.propagate = output in {"records", "off"}
    EventLog.shown_by_us = not _logger.propagate
    if output == "off":
        _logger.setLevel(logging.NOTSET)
        return
    if not _logger.propagate:
        _own_handlers.append(_handler(output, stream or sys.stderr))
        _logger.addHandler(_own_handlers[0])
    _logger.setLevel(LEVELS[level])
    listener.listen(LEVELS[level])


def _check(name: str, value: str, known: tuple[str, ...] | Mapping[str, int]) -> None:
    if value not in known:
        raise ValueError(f"{name}: expected one of {list(known)}, found {value!r}")


def _handler(output: str, stream: TextIO) -> logging.Handler:
    from modular_tf.log_output.formats import JsonLines, PrettyLines  # noqa: PLC0415  (likewise)

    handler = logging.StreamHandler(stream)
    colours = output == "pretty" and stream.isatty() and "NO_COLOR" not in os.environ
    handler.setFormatter(JsonLines() if output == "json" else PrettyLines(colours=colours))
    return handler


def follow_environment(environment: Mapping[str, str] | None = None) -> None:
    """Do what `MODULAR_TF_LOG` says: `OUTPUT` or `OUTPUT:LEVEL`; nothing after `configure_logging`.

    What cannot be understood counts as "pretty", and is the first event there: who sets the
    variable wants to see something. A process with rights that its user lacks ignores the variable.

    Args:
        environment: Instead of `os.environ`.
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
