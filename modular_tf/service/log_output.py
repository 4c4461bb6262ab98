"""Output of the structured log: whether it is shown, where, and in which form.

Plugins' log messages become events by a thread that exists only while there is a listener. It stops
before a fork and starts again in the parent and in the child, so that no process is forked while it
runs.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.search import file_stem
from modular_tf.errors import ResourceExhaustedError
from modular_tf.events import EventLog
from modular_tf.events.event_log import CRITICAL, DEBUG, ERROR, INFO, ROOT, WARNING

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping
    from typing import TextIO

    from modular_tf.native.plugin_messages import PluginMessage

VARIABLE = "MODULAR_TF_LOG"
OUTPUTS = ("pretty", "json", "records", "off")
LEVELS = {
    "debug": DEBUG,
    "info": INFO,
    "warning": WARNING,
    "error": ERROR,
}
_NOT_PRETTY = ("logger", "written")  # the name of the event and the timestamp say as much
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
            listener.stop()  # what was heard so far belongs to the old output
            _show(output, LEVELS[level], stream or sys.stderr)
            if output != "off":
                _watch_forks()
                listener.listen(LEVELS[level])
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
    from logging import Formatter, StreamHandler  # noqa: PLC0415  (likewise)

    class Lines(Formatter):
        """Writes a record as one line."""

        def format(self, record: logging.LogRecord) -> str:
            return line_of(_as_dictionary(record))

    colours = output == "pretty" and stream.isatty() and "NO_COLOR" not in os.environ
    line_of = _json_line if output == "json" else _pretty(colours=colours)
    handler = StreamHandler(stream)
    handler.setFormatter(Lines())
    return handler


def _as_dictionary(record: logging.LogRecord) -> dict[str, Any]:
    """Return a record's event; a record of another logger has its message only."""
    from datetime import datetime, timezone  # noqa: PLC0415  (likewise)

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


def _json_line(values: dict[str, Any]) -> str:
    """Return one JSON object of ASCII; values that JSON does not know are written as `str` does."""
    import json  # noqa: PLC0415  (likewise)

    return json.dumps(values, default=str)


def _pretty(*, colours: bool) -> Callable[[dict[str, Any]], str]:
    """Return what writes an event as structlog's console does, without what is None.

    Values are quoted: what a plugin logs may hold escape sequences, which no terminal must obey.
    """
    import structlog  # noqa: PLC0415  (the slowest import of the package)

    render = structlog.dev.ConsoleRenderer(colors=colours, repr_native_str=True, sort_keys=False)

    def line_of(values: dict[str, Any]) -> str:
        shown = {k: v for k, v in values.items() if v is not None and k not in _NOT_PRETTY}
        return str(render(None, "", shown))

    return line_of


def follow_environment() -> None:
    """Configure the log by `MODULAR_TF_LOG`, `OUTPUT` or `OUTPUT:LEVEL`, unless it is configured.

    What cannot be understood counts as "pretty", and is the first event there: who sets the
    variable wants to see something. A process with rights that its user lacks ignores the variable.
    """
    said = os.environ.get(VARIABLE)
    if not said or _decided or is_privileged():
        return
    output, _, level = said.partition(":")
    try:
        configure_logging(output, level=level or "info")
    except ValueError:
        configure_logging()
        _log.warning("environment.misread", variable=VARIABLE, value=said)


# -- plugins' messages -----------------------------------------------------------------------------


_messages_log = EventLog("plugin_messages")
_TIMEOUT_S = 2.0  # of a handler of the application's that blocks; what is left goes to stderr

# By the host runtime's levels.
_SEVERITIES = (("info", INFO), ("warning", WARNING), ("error", ERROR), ("fatal", CRITICAL))


class Listener:
    """Logs plugins' messages as `plugin.message`. [any thread]"""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._thread: threading.Thread | None = None
        self._level: int | None = None  # None: there is no listener
        self._has_thread = False  # else no thread could be started
        self._stop_is_unfinished = False
        self._thread_shall_end = False  # when no message waits
        self._n_received = 0

    def listen(self, level: int) -> None:
        """Listen from now on, to messages of this level of `logging` and above.

        Where no thread can be started for it, plugins go on to write to standard error; the next
        call, or a fork, tries again.
        """
        with self._lock:
            self._level = level
            _native().open_messages(_least_level(level))
            if not self._has_thread:
                self._start(after=self._thread)

    def stop(self) -> None:
        """Log the messages received so far, and let plugins write to standard error again.

        A handler of the application's that blocks is waited for no longer than a few seconds.
        """
        with self._lock:
            if self._level is not None:
                self._level, self._stop_is_unfinished = None, True
            if self._stop_is_unfinished:  # also where an interrupt came before it was done
                self._has_thread, self._thread_shall_end = False, True
                _native().close_messages()
                self._wait_for_thread()
                self._stop_is_unfinished = False

    def before_fork(self) -> None:
        """End the thread, while messages are still collected."""
        if self._level is not None:
            self._thread_shall_end = True
            _native().interrupt_messages()
            self._wait_for_thread()

    def after_fork_in_parent(self) -> None:
        """Start listening again."""
        if self._level is not None and self._thread_shall_end:
            # They are closed where no thread could be started, and a thread would never rest then.
            _native().open_messages(_least_level(self._level))
            self._start(after=self._thread)

    def after_fork_in_child(self) -> None:
        """Listen in the child as well, without the parent's messages."""
        if self._level is not None and self._thread_shall_end:
            self._thread = None
            _native().open_messages(_least_level(self._level))
            self._start(after=None)
            self._stop_with_worker()

    def _stop_with_worker(self) -> None:
        """Stop when a child of `multiprocessing` ends, which runs none of `atexit`'s functions."""
        workers = sys.modules.get("multiprocessing.util")
        if workers is not None:  # it forgets, at its start, what was registered before
            workers.register_after_fork(
                self, lambda its: workers.Finalize(its, its.stop, exitpriority=-100)
            )

    def _start(self, *, after: threading.Thread | None) -> None:
        self._thread_shall_end = False
        self._has_thread = False
        thread = threading.Thread(
            target=self._receive, args=(after,), name="modular_tf plugin messages", daemon=True
        )
        former, self._thread = self._thread, thread  # an interrupt may come when it runs already
        try:
            start_thread(thread)
        except ResourceExhaustedError:
            self._thread = former
            _native().close_messages()
        else:
            self._has_thread = True

    def _wait_for_thread(self) -> None:
        """Wait for the end of the thread as long as it makes progress."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        n_seen = -1
        while thread.is_alive() and n_seen != self._n_received:
            n_seen = self._n_received
            thread.join(_TIMEOUT_S)

    def _receive(self, former: threading.Thread | None) -> None:
        """Log messages until `stop` or a fork ends the thread."""
        # A handler kept it busy; messages are fetched by one at a time.
        if former is not None and former.is_alive():  # one whose start was interrupted is not
            former.join()
        while True:
            message = self._receive_some()
            if dropped := _native().dropped_messages():
                _messages_log.warning("plugin.messages_dropped", count=dropped)
            if message is None and self._thread_shall_end:
                return

    def _receive_some(self) -> PluginMessage | None:
        """Log waiting messages, but not so many that dropped ones are reported too late."""
        native = _native()
        for _ in range(native.MOST_WAITING):
            message: PluginMessage | None = native.next_message()
            if message is None:
                break
            self._n_received += 1
            with suppress(Exception):  # no handler may end this thread
                _log_message(message)
        return message


def _native() -> Any:
    """Return the native half, which is loaded with the first listener."""
    from modular_tf.native import plugin_messages  # noqa: PLC0415  (most processes never listen)

    return plugin_messages


def _least_level(level: int) -> int:
    """Return the lowest of the host runtime's levels that is at least a level of `logging`."""
    if level <= DEBUG:
        return int(_native().ALL)
    levels = [its for _, its in _SEVERITIES]
    return next((ours for ours, its in enumerate(levels) if its >= level), len(levels) - 1)


def _severity(level: int) -> tuple[str, int]:
    """Return the name of a host runtime's level, and that of `logging`; unknown ones are errors."""
    if level < 0:
        return "vlog", DEBUG
    return _SEVERITIES[level] if level < len(_SEVERITIES) else ("error", ERROR)


def _log_message(message: PluginMessage) -> None:
    plugin, library = plugin_at(message.caller)
    seconds = message.time_ns / 1e9
    severity, level = _severity(message.level)
    values = {
        "plugin": plugin,
        "message": message.text,
        "severity": severity,
        "vlog": -1 - message.level if message.level < 0 else None,
        "source": message.source,
        "line": message.line,
        "library": library,
        "thread": message.thread,
        "written": seconds,
    }
    _messages_log.write(level, "plugin.message", values, created=seconds)


# -- the plugin whose code is at an address --------------------------------------------------------

_DESCRIPTORS = "/proc/self/fd/"
_MOST = 4096  # call sites that are remembered

_names: dict[str, str] = {}
_paths: dict[int, str] = {}


def name_library(path: str, plugin: str) -> None:
    """Set the plugin name for messages of the library at `path`. [any thread]

    Without this, messages are called after the library's file, as most plugins are. Where services
    know one file under two names, the last one counts.
    """
    _names[path] = plugin


def plugin_at(address: int) -> tuple[str | None, str | None]:
    """Return the name and the library of the code at an address; None for code of no library."""
    path = _paths.get(address) or _look_up(address)
    return (None, None) if path is None else (_names.get(path) or file_stem(path), path)


def _look_up(address: int) -> str | None:
    from modular_tf.native.library import address_owner  # noqa: PLC0415  (naming needs none of it)

    owner = address_owner(address)
    if owner is None:
        return None
    if owner.path.startswith(_DESCRIPTORS):
        return _behind(owner.path)
    if len(_paths) >= _MOST:
        _paths.clear()
    _paths[address] = owner.path
    return owner.path


def _behind(descriptor: str) -> str:
    """Return the file or copy behind a descriptor's path, by which a library is being mapped."""
    with suppress(OSError):
        target = os.readlink(descriptor)
        return target.removeprefix("/memfd:").removesuffix(" (deleted)")
    return descriptor


listener = Listener()
"""The one of the process."""

_watching_forks: list[bool] = []


def _watch_forks() -> None:
    """Have forks end the listener's thread before they take the lock of `logging`.

    The thread may need that lock to end. What is registered last runs first before a fork, so this
    is called after the import of `logging`. Where an interrupt has it done twice, it does no harm.
    """
    if not _watching_forks:
        os.register_at_fork(
            before=listener.before_fork,
            after_in_parent=listener.after_fork_in_parent,
            after_in_child=listener.after_fork_in_child,
        )
        _watching_forks.append(True)
