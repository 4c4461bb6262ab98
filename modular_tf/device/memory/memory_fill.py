"""Filling device memory: by the plugin's functions, or by copies if it has none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.memory.device_memory import DeviceMemory
    from modular_tf.device.streams.stream_copies import StreamCopies

_CHUNK_BYTES = 1 << 20


class Fill(NamedTuple):
    """One function of plugins that fills memory."""

    name: str  # of the plugin's function
    operation: int  # its number, to ask whether the plugin has it
    # called with a stream, a memory, an offset, the value if it takes one, a size
    function: Callable[..., Any]
    width: int  # bytes of a value

    def pattern(self, value: int = 0) -> bytes:
        """Return the bytes that a value repeats."""
        return value.to_bytes(self.width, sys.byteorder)


MEM_ZERO = Fill("mem_zero", lib.MTF_MEM_ZERO, lib.mtf_mem_zero, 1)
MEMSET = Fill("memset", lib.MTF_MEMSET, lib.mtf_memset, 1)
MEMSET32 = Fill("memset32", lib.MTF_MEMSET32, lib.mtf_memset32, 4)


def fill_by_copies(
    stream: StreamCopies, target: DeviceMemory, pattern: bytes, n_bytes: int, offset: int
) -> None:
    """Enqueue copies of a pattern of 1 or 4 bytes, of which `n_bytes` is a multiple.

    The offset is in bytes, into the target. Raises InvalidArgumentError if the bytes lie outside of
    the target; other errors are the plugin's own status.
    """
    target.part(offset, n_bytes).close()  # all or nothing: a copy must not start what fails later
    chunk = pattern * (min(n_bytes, _CHUNK_BYTES) // len(pattern))
    for start in range(0, n_bytes, len(chunk)):
        size = min(len(chunk), n_bytes - start)
        stream.memcpy_htod(target, chunk, size, offset + start)
