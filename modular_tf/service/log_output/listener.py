"""The thread that turns plugins' log messages into events.

It exists only while there is a listener. It stops before a fork and starts again in the parent and
in the child, so that no process is forked while the thread is running.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.discovery.search import file_stem
from modular_tf.errors import ResourceExhaustedError
from modular_tf.events import EventLog
from modular_tf.events.event_log import CRITICAL, DEBUG, ERROR, INFO, WARNING

if TYPE_CHECKING:
    from modular_tf.native.plugin_messages import PluginMessage

_log = EventLog("plugin_messages")
_PATIENCE_S = 2.0  # with a handler of the application's that blocks; what is left goes to stderr

_LEVELS = (INFO, WARNING, ERROR, CRITICAL)  # by the host runtime's


class Listener:
    """Logs plugins' messages as `plugin.message`. [any thread]"""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._thread: threading.Thread | None = None
        self._level: int | None = None  # None: there is no listener
        self._is_hearing = False  # else no thread could be started
        self._is_stopping = False
        self._ending = False  # the thread shall end when nothing waits
        self._n_heard = 0

    def listen(self, level: int) -> None:
        """Listen from now on, to messages of this level of `logging` and above.

        Where no thread can be started for it, plugins go on to write to standard error; the next
        call, or a fork, tries again.
        """
        with self._lock:
            self._level = level
            _native().open_messages(_least_level(level))
            if not self._is_hearing:
                self._start(after=self._thread)

    def stop(self) -> None:
        """Log the messages received so far, and let plugins write to standard error again.

        A handler of the application's that blocks is waited for no longer than a few seconds.
        """
        with self._lock:
            if self._level is not None:
                self._level, self._is_stopping = None, True
            if self._is_stopping:  # also where an interrupt came before it was done
                self._is_hearing, self._ending = False, True
                _native().close_messages()
                self._wait_for_thread()
                self._is_stopping = False

    def before_fork(self) -> None:
        """End the thread, while messages are still collected."""
        if self._level is not None:
            self._ending = True
            _native().interrupt_messages()
            self._wait_for_thread()

    def after_fork_in_parent(self) -> None:
        """Start listening again."""
        if self._level is not None:
            # They are closed where no thread could be started, and a thread would never rest then.
            _native().open_messages(_least_level(self._level))
            self._start(after=self._thread)

    def after_fork_in_child(self) -> None:
        """Listen in the child as well, without the parent's messages."""
        self._thread = None
        if self._level is not None:
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
        self._ending = False
        self._is_hearing = False
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
            self._is_hearing = True

    def _wait_for_thread(self) -> None:
        """Wait for the end of the thread as long as it makes progress."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        n_heard = -1
        while thread.is_alive() and n_heard != self._n_heard:
            n_heard = self._n_heard
            thread.join(_PATIENCE_S)

    def _receive(self, former: threading.Thread | None) -> None:
        """Log messages until `stop` or a fork ends the thread."""
        # A handler kept it busy; messages are fetched by one at a time.
        if former is not None and former.is_alive():  # one whose start was interrupted is not
            former.join()
        while True:
            message = self._receive_some()
            if dropped := _native().dropped_messages():
                _log.warning("plugin.messages_dropped", count=dropped)
            if message is None and self._ending:
                return

    def _receive_some(self) -> PluginMessage | None:
        """Log waiting messages, but not so many that dropped ones are reported too late."""
        native = _native()
        for _ in range(native.MOST_WAITING):
            message: PluginMessage | None = native.next_message()
            if message is None:
                break
            self._n_heard += 1
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
    return next((ours for ours, its in enumerate(_LEVELS) if its >= level), len(_LEVELS) - 1)


def _log_message(message: PluginMessage) -> None:
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
    _log.write(_level(message.level), "plugin.message", values, created=seconds)


def _level(severity: int) -> int:
    if severity < 0:
        return DEBUG
    return _LEVELS[severity] if severity < len(_LEVELS) else ERROR


def _severity(level: int) -> str:
    names = ("info", "warning", "error", "fatal")
    if level < 0:
        return "vlog"
    return names[level] if level < len(names) else "error"


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

os.register_at_fork(
    before=listener.before_fork,
    after_in_parent=listener.after_fork_in_parent,
    after_in_child=listener.after_fork_in_child,
)
