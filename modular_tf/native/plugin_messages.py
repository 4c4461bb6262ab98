"""The queue of log messages that plugins write through the host runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import decode_pointer

if TYPE_CHECKING:
    from modular_tf.native.library import Library

ALL = -(1 << 31)
"""A level below all others: `VLOG(n)` has level -1 - n."""
MOST_WAITING: int = lib.MTF_PLUGIN_MESSAGES_MOST
"""How many messages wait at most; further ones are dropped and counted."""


class PluginMessage(NamedTuple):
    """One line that a plugin logged.

    `level` is 0 to 3 for info, warning, error and fatal, -1 - n for `VLOG(n)`. Undecodable bytes of
    `text` are surrogates. `source` and `line` are None where the plugin names no source file.
    `time_ns` is in nanoseconds since 1970, `thread` the system's number of the thread that wrote
    it, `caller` an address in the code that wrote it.
    """

    level: int
    text: str
    source: str | None
    line: int | None
    time_ns: int
    thread: int
    caller: int


def attach_messages(runtime: Library) -> None:
    """Attach to the host runtime's messages of plugins; without a listener they go to stderr."""
    functions = [runtime.symbol(name) for name in ("mtf_set_log_sink", "mtf_write_log_line")]
    lib.mtf_plugin_messages_attach(*(ffi.cast("void *", address) for address in functions))


def open_messages(least_level: int) -> None:
    """Queue messages from now on, of this level and above; lower ones are dropped unseen."""
    lib.mtf_plugin_messages_open(least_level)


def close_messages() -> None:
    """Let messages go to stderr again; what was queued can still be fetched."""
    lib.mtf_plugin_messages_close()


def interrupt_messages() -> None:
    """Let `next_message` return None until the next `open_messages`, though messages may wait."""
    lib.mtf_plugin_messages_interrupt()


def next_message() -> PluginMessage | None:
    """Return the next message; wait for one if there is none.

    None when it was interrupted, and when none is waiting while messages are closed, or while
    `dropped_messages` has a number to report. A call for the next one says that the thread's last
    one was handled, which a fatal one waits for: a thread calls until it gets None. [any thread]
    """
    found = lib.mtf_plugin_messages_next()
    if not found:
        return None
    return PluginMessage(
        level=found.level,
        text=decode_pointer(found.text) or "",
        source=decode_pointer(found.source),
        line=found.source_line or None,
        time_ns=found.time_ns,
        thread=found.thread,
        caller=int(ffi.cast("uintptr_t", found.caller)),
    )


def dropped_messages() -> int:
    """Return how many messages were dropped since the last call, because the queue was full."""
    return int(lib.mtf_plugin_messages_dropped())
