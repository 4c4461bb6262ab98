"""What a stream's copies use, kept alive until the stream has passed them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from modular_tf.device.event import EventStatus
from modular_tf.errors import ModularTFError
from modular_tf.fork_lock import ForkLock

if TYPE_CHECKING:
    from modular_tf.device.event import Event
    from modular_tf.device.stream import Stream

_BATCH_BYTES = 16 << 20
"""Bytes copied between two events of the stream's own: dropped memories must not pile up."""

_SHORTEST_BYTES = _BATCH_BYTES // 64
"""What any copy counts as, besides: an event costs as much as a short copy."""


class InFlight:
    """The buffers and memories of one stream's work. [any thread]

    They are held in batches. A full batch ends with an event; once the plugin says that this is
    COMPLETE, the batch is dropped. Where it says that it failed, or cannot make an event, all is
    kept until the stream is known to be done or is destroyed.
    """

    __slots__ = ("_batch", "_ended", "_lock", "_room")

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._batch: list[object] = []
        self._room = _BATCH_BYTES
        self._ended: deque[tuple[Event | None, list[object]]] = deque()

    def hold(self, used: object, n_bytes: int, stream: Stream) -> None:
        """Keep what the stream's last operation uses.

        Args:
            used: Is dropped when the stream has passed it.
            n_bytes: How many it copies or sets.
            stream: Whose work it is.
        """
        self._batch.append(used)
        self._room -= n_bytes + _SHORTEST_BYTES
        if self._room <= 0:
            with self._lock:
                self._drop_passed()
                self._end_batch(stream)

    def drop_passed(self) -> bool:
        """Let go of the batches that the stream has passed; tell whether of any. Does not wait."""
        with self._lock:
            before = len(self._ended)
            self._drop_passed()
            return len(self._ended) < before

    def _end_batch(self, stream: Stream) -> None:
        batch, self._batch, self._room = self._batch, [], _BATCH_BYTES
        try:
            self._ended.append((stream.record_event(), batch))
        except ModularTFError:
            self._ended.append((None, batch))

    def _drop_passed(self) -> None:
        ended = self._ended
        while ended and _is_passed(ended[0][0]):
            ended.popleft()

    def take_all(self) -> object:
        """Hand over what is held now.

        Returns:
            What keeps it; to be dropped when the stream is known to have passed it all. What the
            stream is given from now on is not in there.
        """
        with self._lock:
            taken = self._batch, self._ended
            self._batch, self._room, self._ended = [], _BATCH_BYTES, deque()
        return taken

    def drop_all(self) -> None:
        """Let go of everything: the stream is done."""
        self.take_all()

    def __len__(self) -> int:
        return len(self._batch) + sum(len(batch) for _, batch in self._ended)


def _is_passed(event: Event | None) -> bool:
    try:
        return event is not None and event.status is EventStatus.COMPLETE
    except ModularTFError:
        return False
