"""New host memory that a copy will fill."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from typing_extensions import Buffer

_ALIGNMENT = 64  # jax copies what is aligned less (dlpack §2)
_MAPPED_FROM = 1 << 20
"""In bytes. What is so large is mapped by itself, and not filled with zeros first."""


def fresh_host_memory(n_bytes: int) -> memoryview:
    """Return writable bytes, aligned for every consumer, that go with the last view of them.

    `MemoryError` if there are not so many.
    """
    if n_bytes >= _MAPPED_FROM:
        return memoryview(_mapped(n_bytes))
    room = bytearray(n_bytes + _ALIGNMENT - 1)
    start = -address_of(room) % _ALIGNMENT
    return memoryview(room)[start : start + n_bytes]


def address_of(found: Buffer) -> int:
    """Return the address of an object's bytes."""
    return int(ffi.cast("uintptr_t", ffi.from_buffer("char[]", found)))


def _mapped(n_bytes: int) -> mmap.mmap:
    """Map memory in huge pages, which are several times as fast to write for the first time."""
    try:
        made = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {n_bytes} bytes of host memory: {error}") from None
    with suppress(OSError):  # a kernel without them
        made.madvise(mmap.MADV_HUGEPAGE)
    return made
