"""Streams with a buffer that somebody still writes to, so that their filesystem can end them."""

from __future__ import annotations

import weakref
from typing import IO, Any

from modular_tf.errors import ModularTFError


class OpenWriters:
    """The streams of one filesystem, as long as somebody holds them. [any thread]"""

    def __init__(self) -> None:
        self._streams: dict[int, weakref.ref[IO[Any]]] = {}

    def add(self, stream: IO[Any]) -> None:
        """Take note of a stream."""
        key, streams = id(stream), self._streams

        def forget(_: object) -> None:
            streams.pop(key, None)

        streams[key] = weakref.ref(stream, forget)

    def close(self) -> ModularTFError | None:
        """Write out and close all of them; return the first failure of the filesystem."""
        failed = None
        for reference in list(self._streams.values()):
            stream = reference()
            try:
                if stream is not None:
                    stream.close()
            except ModularTFError as error:
                failed = failed or error
            except ValueError:
                pass  # detached: its user took what is below, which the filesystem closes itself
        self._streams.clear()
        return failed

    def abandon(self) -> None:
        """Forget all of them, in a forked child: what they hold is the parent's to write.

        A thread that was writing to one does not exist here and would never give it back.
        """
        self._streams.clear()
