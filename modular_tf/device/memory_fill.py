"""Filling device memory by copies, for plugins without mem_zero, memset and memset32."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.device.memory import DeviceMemory
    from modular_tf.device.stream import Stream

_CHUNK_BYTES = 1 << 20


def fill_by_copies(
    stream: Stream, target: DeviceMemory, pattern: bytes, n_bytes: int, offset: int
) -> None:
    """Enqueue copies of a repeated pattern.

    Args:
        stream: Where.
        target: What to fill.
        pattern: 1 or 4 bytes; `n_bytes` is a multiple of their number.
        n_bytes: How much.
        offset: In bytes, into the target.

    Raises:
        InvalidArgumentError: The bytes lie outside of the target.
        ModularTFError: The plugin's own status.
    """
    target.part(offset, n_bytes).close()  # all or nothing: a copy must not start what fails later
    chunk = pattern * (min(n_bytes, _CHUNK_BYTES) // len(pattern))
    for start in range(0, n_bytes, len(chunk)):
        size = min(len(chunk), n_bytes - start)
        stream.memcpy_htod(target, chunk, size, offset + start)
