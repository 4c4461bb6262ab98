"""The buffered streams that are still open for writing, so that their filesystem can close them."""

from __future__ import annotations

import gc
import io
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError, ModularTFError, collected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.filesystem.writer_streams import StreamWriter, TextWriter

    Stream = StreamWriter | TextWriter


class OpenWriters:
    """The open streams of one filesystem, as long as they are referenced. [any thread]"""

    def __init__(self) -> None:
        self._streams: dict[weakref.ref[Stream], None] = {}

    def add(self, stream: Stream) -> None:
        """Record a stream; one that stands on top of another comes after that."""
        self._streams[weakref.ref(stream, self._streams.pop)] = None

    def close(self, failures: list[ModularTFError]) -> None:
        """Write out and close all of them, and what others have put on top of them.

        A store keeps nothing of a file that lacks bytes, since a write failed or was interrupted.
        An interrupt leaves the rest to the next call.

        Args:
            failures: Gets the errors of the filesystem.
        """
        held = [reference() for reference in list(self._streams)]
        streams = [stream for stream in held if stream is not None and _is_open_writer(stream)]
        for stream in streams:
            stream.prepare_close()
            if stream.is_torn:
                stream.give_up_in_store()
        # Written out before anything is closed, from below: an interrupted close may lose the rest.
        others = _on_top_of(streams)
        for stream in streams:
            with _closing(failures):
                stream.flush()
        for end in (*(other.flush for other in others), *(other.close for other in others[::-1])):
            with suppress(Exception):  # of strangers; what the filesystem says is said again below
                end()
        for stream in reversed(streams):
            with _closing(failures):
                stream.close()

    def abandon(self) -> None:
        """Drop all of them in a forked child: the parent writes their buffers.

        A thread that was writing to one does not exist here and would never give it back.
        """
        self._streams.clear()


@contextmanager
def _closing(failures: list[ModularTFError]) -> Iterator[None]:
    try:
        with suppress(ValueError), collected(failures):  # its user may close or detach it meanwhile
            yield
    except RuntimeError as error:  # io's, to a signal handler that came in the middle of a write
        failures.append(FailedPreconditionError(f"a file is being written to: {error}"))


def _on_top_of(streams: Sequence[io.IOBase]) -> list[io.IOBase]:
    """Return the io objects that write to some streams through a buffer of their own, top last.

    They are not registered: fsspec adds compression and text on top of what we open, and so do
    users. Python would write them out later, to streams that are closed.
    """
    above = _writers_that_hold(streams)
    text = [writer for writer in _writers_that_hold(above) if isinstance(writer, io.TextIOWrapper)]
    return [*above, *text]


def _writers_that_hold(streams: Sequence[io.IOBase]) -> list[io.IOBase]:
    if not streams:
        return []
    holders = gc.get_referrers(*streams)
    holders += gc.get_referrers(*(holder for holder in holders if type(holder) is dict))
    known = {id(stream) for stream in streams}
    return [
        holder
        for holder in holders
        if id(holder) not in known and _is_open_writer(holder) and _may_write_to(holder, known)
    ]


def _may_write_to(holder: io.IOBase, known: set[int]) -> bool:
    """Return whether an object may write to one of these streams."""
    if isinstance(holder, io.BytesIO | io.StringIO | io.FileIO):
        return False
    if isinstance(holder, io.BufferedWriter | io.BufferedRandom):
        return id(holder.raw) in known
    return not isinstance(holder, io.TextIOWrapper) or id(holder.buffer) in known


def _is_open_writer(found: object) -> bool:
    try:
        return isinstance(found, io.IOBase) and not found.closed and found.writable()
    except (AttributeError, ValueError):  # nobody has initialised it yet, or it is detached
        return False
