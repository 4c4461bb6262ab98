"""Hearing what plugins log: the thread that turns their messages into events.

It exists only while somebody listens. A fork stops it before and starts it after, in the parent and
in the child, so that no process is forked with a thread of ours at work.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress

from modular_tf.events import EventLog
from modular_tf.fork_lock import ForkLock
from modular_tf.log_output.plugin_names import plugin_at
from modular_tf.native import plugin_messages

_log = EventLog("plugin_messages")
_PATIENCE_S = 2.0  # with a handler of the application's that blocks; what is left goes to stderr

_LEVELS = {
    plugin_messages.INFO: logging.INFO,
    plugin_messages.WARNING: logging.WARNING,
    plugin_messages.ERROR: logging.ERROR,
    plugin_messages.FATAL: logging.CRITICAL,
}


class Listener:
    """Logs plugins' messages as `plugin.message`. [any thread]"""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._thread: threading.Thread | None = None
        self._level: int | None = None  # None: nobody listens

    def listen(self, level: int) -> None:
        """Listen from now on, to messages of this level of `logging` and above."""
        with self._lock:
            was_silent = self._level is None
            self._level = level
            plugin_messages.open_messages(_least_level(level))
            if was_silent:
                self._start(after=self._thread)

    def stop(self) -> None:
        """Log what was heard so far, and let plugins write to standard error again."""
        with self._lock:
            if self._level is None:
                return
            self._level = None
            plugin_messages.close_messages()
            self._end_thread()

    def before_fork(self) -> None:
        """Log what was heard so far and end the thread, while messages go on to be collected."""
        if self._level is not None:
            plugin_messages.interrupt_messages()
            self._end_thread()

    def after_fork_in_parent(self) -> None:
        """Go on listening."""
        if self._level is not None:
            self._start(after=self._thread)

    def after_fork_in_child(self) -> None:
        """Listen in the child as well; what the parent heard is the parent's."""
        self._thread = None
        if self._level is not None:
            plugin_messages.open_messages(_least_level(self._level))
            self._start(after=None)

    def _start(self, *, after: threading.Thread | None) -> None:
        thread = threading.Thread(
            target=_hear, args=(after,), name="modular_tf plugin messages", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the system or the interpreter starts no more threads
            plugin_messages.close_messages()
        else:
            self._thread = thread

    def _end_thread(self) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE_S)


def _least_level(level: int) -> int:
    """Return the lowest of the host runtime's levels that is at least a level of `logging`."""
    if level <= logging.DEBUG:
        return plugin_messages.ALL
    return next((ours for ours, its in _LEVELS.items() if its >= level), plugin_messages.FATAL)


def _hear(former: threading.Thread | None) -> None:
    """Log messages until told to stop."""
    if former is not None:  # a handler kept it busy; messages are fetched by one at a time
        former.join()
    while True:
        for _ in range(plugin_messages.MOST_WAITING):
            message = plugin_messages.next_message()
            if message is None:
                break
            with suppress(Exception):  # no handler may end this thread
                _log_message(message)
        dropped = plugin_messages.dropped_messages()
        if dropped:
            _log.warning("plugin.messages_dropped", count=dropped)
        elif message is None:
            return


def _log_message(message: plugin_messages.PluginMessage) -> None:
    level = _LEVELS.get(message.level, logging.DEBUG if message.level < 0 else logging.ERROR)
    plugin, library = plugin_at(message.caller)
    seconds = message.time_ns / 1e9
    values = {
        "plugin": plugin,
        "message": message.text,
        "severity": _severity(message.level),
        "vlog": -1 - message.level if message.level < 0 else None,
        "source": message.source,
        "line": message.line,
        "library": library,
        "thread": message.thread,
        "written": seconds,
    }
    _log.write(level, "plugin.message", values, created=seconds)


def _severity(level: int) -> str:
    names = ("info", "warning", "error", "fatal")
    return "vlog" if level < 0 else names[min(level, plugin_messages.FATAL)]


listener = Listener()
"""The one of the process."""

os.register_at_fork(
    before=listener.before_fork,
    after_in_parent=listener.after_fork_in_parent,
    after_in_child=listener.after_fork_in_child,
)
