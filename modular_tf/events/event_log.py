"""Writes events into the standard `logging` tree, or to the application's structlog.

An application that has configured structlog gets the events from the logger that
`structlog.get_logger` makes, so its own factory, wrapper class, processors and bound context count.
structlog is the slowest import of the package, so it is never loaded here: 150 ms of CPU time
beside 161 ms for all of `modular-tf list` without a plugin (the best of 21 runs each). Nor is
`logging`, which takes 6 ms: where nobody has imported it, nobody has a handler.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from modular_tf.redaction import redacted

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping

ROOT = "modular_tf"
"""The logger above all of this package's."""

# The levels of `logging`.
DEBUG, INFO, WARNING, ERROR, CRITICAL = 10, 20, 30, 40, 50

_METHODS = {  # of structlog's loggers; an application may give the levels of logging other names
    DEBUG: "debug",
    INFO: "info",
    WARNING: "warning",
    ERROR: "error",
    CRITICAL: "critical",
}


class EventLog:
    """Writes events of one part of the package, named as in `device.registry`. [any thread]

    Info for outcomes, warning when something that the user installed is not used, debug for single
    steps. Never raises, whatever the application's handlers do. Handlers are called by the thread
    that writes, after it has released this package's locks (`deliver`).

    An event is a record of the logger `modular_tf.NAME`. Its message reads `event key=value ...`;
    the attribute `event` of the record holds all of it as a dictionary. `bind` gives a log whose
    events have some keys in common.
    """

    __slots__ = ("_bound", "_name")

    shown_by_us: ClassVar[bool] = False
    """Whether `modular_tf.service.log_output` shows the events, not the application's structlog."""

    default_level: ClassVar[int] = 0
    """The level of the logger `modular_tf` while nobody has given it one."""

    def __init__(self, name: str) -> None:
        self._name = f"{ROOT}.{name}"
        self._bound: dict[str, object] = {}

    def bind(self, **values: object) -> EventLog:
        """Return a log of the same part, whose events have these keys and values first."""
        log = object.__new__(EventLog)
        log._name, log._bound = self._name, {**self._bound, **_without_secrets(values)}
        return log

    def is_enabled_for(self, level: int) -> bool:
        """Return whether an event of this level of `logging` would be handled."""
        logging = sys.modules.get("logging")
        if logging is None or not hasattr(logging, "captureWarnings"):  # its last function
            return False
        # As `isEnabledFor`, without the lock of `logging`, under which handlers are configured.
        manager = logging.Logger.manager
        if manager.disable >= level or getattr(
            manager.loggerDict.get(self._name), "disabled", False
        ):
            return False
        return _effective_level(manager, self._name) <= level

    def debug(self, event: str, **values: object) -> None:
        """Log a step at level DEBUG."""
        self.write(DEBUG, event, values)

    def info(self, event: str, **values: object) -> None:
        """Log an outcome at level INFO."""
        self.write(INFO, event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log something that the user should act on."""
        self.write(WARNING, event, values)

    def write(
        self, level: int, event: str, values: Mapping[str, object], *, created: float | None = None
    ) -> None:
        """Log an event; `created` is in seconds since 1970, by default now."""
        if self.is_enabled_for(level):
            values = _without_secrets(values)
            reported = Event(event=event, **self._bound, **values)
            when = time() if created is None else created
            deliver(partial(self._hand_over, level, reported, when, event, values))

    def _hand_over(
        self, level: int, reported: Event, created: float, event: str, values: Mapping[str, object]
    ) -> None:
        """Pass an event to the application's processors and handlers."""
        import logging  # noqa: PLC0415  (it is: a level is enabled)

        record = logging.LogRecord(self._name, level, "", 0, reported, None, None)
        record.event = reported
        record.created = created
        record.msecs = created % 1 * 1000
        try:
            structlog = _configured_structlog()
            if structlog is None:
                _require_handler()
                logging.getLogger(self._name).handle(record)
            else:
                log = structlog.get_logger(self._name, **self._bound)
                getattr(log, _METHODS[record.levelno])(event, **values)
        except Exception:  # noqa: BLE001  (of the application's code)
            if logging.lastResort is not None:
                logging.lastResort.handle(record)


class Event(dict[str, object]):
    """An event with its keys and values; as text, `event key=value ...`."""

    def __str__(self) -> str:
        values = (f"{k}={_shown(value)}" for k, value in self.items() if k != "event")
        return " ".join([str(self["event"]), *values])


def _without_secrets(values: Mapping[str, object]) -> dict[str, object]:
    return {
        name: redacted(value) if isinstance(value, str) else value for name, value in values.items()
    }


def _configured_structlog() -> Any:
    """Return structlog if the application configured it and our own output is off."""
    structlog = sys.modules.get("structlog")
    if structlog is None or EventLog.shown_by_us:
        return None
    return structlog if structlog.is_configured() else None


def _shown(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and text != "" and not set(text) & set(" \"'=")
    return text if plain else repr(value)


def _effective_level(manager: logging.Manager, name: str) -> int:
    """Return the level of a logger or of the next one above it that has one; none is made."""
    while name:
        level: int = getattr(manager.loggerDict.get(name), "level", 0)
        if name == ROOT:
            level = level or EventLog.default_level
        if level:
            return level
        name = name.rpartition(".")[0]
    return manager.root.level


def _require_handler() -> None:
    """Have the record dropped that nobody handles: a library says nothing until it is asked."""
    import logging  # noqa: PLC0415  (likewise)

    root = logging.getLogger(ROOT)
    if not any(isinstance(handler, logging.NullHandler) for handler in root.handlers):
        root.addHandler(logging.NullHandler())


# -- calls of users' code (log handlers, hooks), never while a lock of this package is held --------

_Result = TypeVar("_Result")


class _OfThread(threading.local):
    """The calls that one thread has collected; what an interrupt left of them comes first."""

    def __init__(self) -> None:
        self.is_collecting = False
        self.is_delivering = False
        self.calls: deque[Callable[[], object]] = deque()


_mine = _OfThread()


def deliver(call: Callable[[], object]) -> None:
    """Call users' code now, or when this thread has ended what collects it.

    Such code may wait for a lock of the application's, whose owner may wait for one of ours. What
    it raises ends the delivery; the rest comes with the next one.
    """
    _mine.calls.append(call)
    deliver_collected()


def is_collecting() -> bool:
    """Return whether this thread collects calls."""
    return _mine.is_collecting


def collecting(call: Callable[[], _Result]) -> _Result:
    """Make a call that takes locks; users' code waits for `deliver_collected`."""
    try:
        _mine.is_collecting = True
        return call()
    finally:
        _mine.is_collecting = False


def collected() -> deque[Callable[[], object]]:
    """Return what this thread has collected, for another thread that delivers it."""
    return _mine.calls


def deliver_collected(others: deque[Callable[[], object]] | None = None) -> None:
    """Deliver what was collected, and what is added meanwhile, one after the other.

    `others` is what another thread has collected.
    """
    if others is not None and others is not _mine.calls:
        with suppress(IndexError):  # two threads may empty it
            while True:
                _mine.calls.append(others.popleft())
    if _mine.is_collecting or _mine.is_delivering:
        return
    try:
        _mine.is_delivering = True
        while _mine.calls:
            _mine.calls.popleft()()
    finally:
        _mine.is_delivering = False
