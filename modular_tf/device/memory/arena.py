"""A best-fit allocator with coalescing over the memory of a device, or of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.errors import InvalidArgumentError, OutOfMemoryError, ResourceExhaustedError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import take_error
from modular_tf.native.strings import decode

if TYPE_CHECKING:
    from typing_extensions import Self

    from modular_tf.device.memory.arena_source import RegionSource
    from modular_tf.errors import ModularTFError

_take = lib.mtf_arena_take
_free = lib.mtf_arena_free

_LARGEST_SIZE = (1 << 64) - 1
_LARGEST_ADDRESS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ArenaStats:
    """The figures of an arena, as in `SP_AllocatorStats`; sizes are in bytes."""

    num_allocs: int  # allocations ever made
    num_live_allocs: int  # not freed yet
    bytes_in_use: int  # in live chunks, with what rounding and splitting left in them
    peak_bytes_in_use: int
    largest_alloc_size: int  # the largest chunk that was ever in use
    bytes_limit: int  # what the regions together may reach
    bytes_reserved: int  # in regions, as their source gave them
    peak_bytes_reserved: int
    largest_free_block_bytes: int  # the largest request that needs no further region


class Arena:
    """Allocates chunks out of larger regions. [any thread]

    Sizes and addresses are multiples of 256 bytes. The numbers are those of TensorFlow's allocator
    for devices: the first region has 2 MiB and each further one twice as much, a region that the
    source refuses is asked for again at nine tenths, and a chunk is split where at least half of
    it or 128 MiB would be left. Unlike there, an exhausted arena says so at once.

    One thread at a time asks the source; others that need a region wait for it, or until enough
    is freed. The source may wait for threads that use the arena, unless those need a region too.
    Addresses are plain numbers: keep the arena as long as they are in use, for its regions go back
    when it is collected.

    Fork: an arena that another thread is changing at that moment refuses every call in the child
    with FailedPreconditionError, and has no figures and no picture there.
    """

    __slots__ = ("__weakref__", "_arena", "_name", "_source")

    def __init__(
        self,
        source: RegionSource,
        bytes_limit: int,
        *,
        growth: bool = True,
        garbage_collection: bool = True,
        name: str = "arena",
    ) -> None:
        """Create an arena; the source is called when an allocation needs a region.

        Args:
            source: Where regions come from; it is kept alive.
            bytes_limit: What regions together may reach.
            growth: Start with a small region; otherwise the first has the size of the limit.
            garbage_collection: Return unused regions when an allocation would fail without that.
            name: For messages, such as `GPU:0`.

        Raises:
            InvalidArgumentError: The limit is negative.
        """
        if bytes_limit < 0:
            raise InvalidArgumentError(f"the limit of the arena {name} is {bytes_limit} bytes")
        text = ffi.new("char[]", name.encode(errors="surrogateescape"))
        options = ffi.new(
            "mtf_arena_options *",
            {
                "name": text,
                "bytes_limit": min(bytes_limit, _LARGEST_SIZE),
                "growth": growth,
                "garbage_collection": garbage_collection,
                "allocate": source.allocate,
                "free": source.free,
                "retain": source.retain or ffi.NULL,
                "release": source.release or ffi.NULL,
                "context": source.context,
            },
        )
        made = ffi.new("mtf_arena **")
        self._name = name
        self._check(lib.mtf_arena_new(options, made), "make")
        # The collector may end these in any order: the core counts who needs the arena.
        self._arena: Any = ffi.gc(made[0], lib.mtf_arena_release)
        self._source = source

    @property
    def native(self) -> Any:
        """The native arena, for functions of the core."""
        return self._arena

    @property
    def name(self) -> str:
        """The name in messages."""
        return self._name

    def allocate(self, n_bytes: int) -> int:
        """Return the address of at least `n_bytes` bytes; 0, which may be freed too, for 0 bytes.

        Raises:
            OutOfMemoryError: The limit or the source is exhausted, or what is free lies in pieces;
                the message has the picture of the arena. Nothing has changed.
            InvalidArgumentError: The size is negative.
            InternalError: The source gave memory twice (rule SE-135), or threw a C++ exception.
            ClosedError: The arena is closed.
        """
        try:
            return _take(self._arena, n_bytes) or self._grow(n_bytes)
        except OverflowError:
            if n_bytes < 0:
                raise InvalidArgumentError(f"allocate: {n_bytes} bytes asked") from None
            return self._grow(_LARGEST_SIZE)

    def _grow(self, n_bytes: int) -> int:
        address = ffi.new("uintptr_t *")
        self._check(lib.mtf_arena_allocate(self._arena, n_bytes, address), "allocate")
        return int(address[0])

    def free(self, address: int) -> None:
        """Free an allocation, which the device must not use any more; it may be used again at once.

        Raises FailedPreconditionError if it was freed before, InvalidArgumentError if the address
        lies inside an allocation, or in no region of this arena.
        """
        try:
            error = _free(self._arena, address)
        except OverflowError:
            raise InvalidArgumentError(f"free: {address} is no address") from None
        if error:
            raise self._failed(error, "free")

    def allocated_bytes(self, address: int) -> int:
        """Return the size of the chunk behind a live allocation; 0 for any other address."""
        if not 0 <= address <= _LARGEST_ADDRESS:
            return 0
        return lib.mtf_arena_allocated_bytes(self._arena, address)

    def stats(self) -> ArenaStats:
        """Return all figures of one moment."""
        stats = ffi.new("mtf_arena_stats *")
        lib.mtf_arena_get_stats(self._arena, stats)
        return ArenaStats(*(getattr(stats, name) for name in ArenaStats.__slots__))

    def picture(self) -> str:
        """Return a text that shows the regions, their chunks and what is in use.

        Raises OutOfMemoryError if the host has no memory for the text.
        """
        text = ffi.gc(lib.mtf_arena_picture(self._arena), lib.mtf_string_free)
        if not text:
            raise OutOfMemoryError(f"no host memory for the picture of the arena {self._name}")
        return decode(ffi.string(text))

    def close(self) -> None:
        """Refuse further allocations; free the regions now or after the last live allocation.

        Closing twice is allowed. Raises InternalError if the source threw a C++ exception; all
        regions count as returned then.
        """
        self._check(lib.mtf_arena_close(self._arena), "close")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _check(self, error: Any, operation: str) -> None:
        if error:
            raise self._failed(error, operation)

    def _failed(self, error: Any, operation: str) -> ModularTFError:
        failure = take_error(error, operation=operation)
        if isinstance(failure, ResourceExhaustedError):
            return OutOfMemoryError(failure.message, operation=operation)
        return failure
