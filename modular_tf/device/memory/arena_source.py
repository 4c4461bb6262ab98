"""The sources of an arena's regions: a pair of C functions with their context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import check

ARENA_ALIGNMENT = 256

_NO_LIMIT = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class RegionSource:
    """A source of regions; its functions are called on any thread, without the GIL.

    It serves any number of arenas.
    """

    allocate: Any  # `mtf_region_allocate`: the address of `bytes` more bytes, or NULL
    free: Any  # `mtf_region_free`: takes a region back, with the size that was asked for
    context: Any  # the first argument of all
    retain: Any = None  # `mtf_source_retain` or None: an arena begins to use the source
    release: Any = None  # `mtf_source_release` or None: that arena has made its last call
    owner: object = None  # an arena keeps it alive too; enough for functions that need nothing else


class HostMemory:
    """The host's own memory as a source of regions, with a limit. [any thread]

    Regions that an arena holds are not touched by lowering the limit: only further ones are
    refused, as a device does whose memory others have taken.
    """

    __slots__ = ("_bytes_limit", "_memory")

    def __init__(self, bytes_limit: int | None = None, *, alignment: int = ARENA_ALIGNMENT) -> None:
        """Create a source without regions.

        Args:
            bytes_limit: Regions together are never larger; None for no limit.
            alignment: Of each region, in bytes: a power of two, at least a pointer's.

        Raises:
            InvalidArgumentError: The alignment is not such a number.
        """
        made = ffi.new("mtf_host_memory **")
        check(lib.mtf_host_memory_new(alignment, _NO_LIMIT, made), operation="host memory")
        self._memory: Any = ffi.gc(made[0], lib.mtf_host_memory_release)
        self.bytes_limit = bytes_limit

    @property
    def bytes_limit(self) -> int | None:
        """How large all regions together may be; None for no limit."""
        return self._bytes_limit

    @bytes_limit.setter
    def bytes_limit(self, value: int | None) -> None:
        lib.mtf_host_memory_set_limit(self._memory, _NO_LIMIT if value is None else value)
        self._bytes_limit = value

    @property
    def bytes_allocated(self) -> int:
        """Bytes in regions that have not come back."""
        return lib.mtf_host_memory_bytes(self._memory)

    @property
    def source(self) -> RegionSource:
        """The `RegionSource` for arenas."""
        return RegionSource(
            ffi.addressof(lib, "mtf_host_memory_allocate"),
            ffi.addressof(lib, "mtf_host_memory_free"),
            self._memory,
            ffi.addressof(lib, "mtf_host_memory_retain"),
            ffi.addressof(lib, "mtf_host_memory_release"),
            self,
        )
