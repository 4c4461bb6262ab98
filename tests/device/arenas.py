"""The core's arena with sources of one's own: over host memory, and over addresses on paper."""

from __future__ import annotations

import ctypes
from collections import namedtuple
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from modular_tf.errors import InvalidArgumentError, OutOfMemoryError, ResourceExhaustedError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import take_error
from modular_tf.native.strings import decode
from tests.fixtures.compiler import compile_object, link_library

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_LARGEST_SIZE = (1 << 64) - 1
_FIGURES = tuple(name for name, _ in ffi.typeof("mtf_allocator_stats").fields)
ArenaStats = namedtuple("ArenaStats", _FIGURES)  # noqa: PYI024  (of the C struct)


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
    """The host's own memory as a source of regions. [any thread]"""

    def __init__(self):
        self._bytes = ffi.new("uint64_t *")

    @property
    def bytes_allocated(self):
        """Bytes in regions that have not come back."""
        return int(self._bytes[0])

    @property
    def source(self):
        return RegionSource(
            _function("mtf_region_allocate", "host_memory_allocate"),
            _function("mtf_region_free", "host_memory_free"),
            self._bytes,
            owner=self,
        )


@cache
def _library():
    source = compile_object(
        Path(__file__).with_name("host_memory.c"), options=["-fvisibility=default"]
    )
    return ctypes.CDLL(str(link_library("libmtf_host_memory.so", [source])))


@cache
def _function(kind, name):
    return ffi.cast(kind, ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value)


class PaperMemory:
    """Regions that exist on paper only: an arena never touches the memory that it manages.

    Attributes:
        capacity: Regions together are never larger.
        skew: Added to each address, which is a multiple of 4 KiB otherwise.
        asked: The sizes of all requests, in order.
        given: Address and size of all regions that were given, in order.
        regions: Address to size of what was given and did not come back.
        returned: Address and size that came back, and the size that had been given there.
        meanwhile: Is called in each request before memory is given, and each time some comes back.
    """

    def __init__(self, capacity=1 << 50, *, skew=0):
        self.capacity = capacity
        self.skew = skew
        self.asked = []
        self.given = []
        self.regions = {}
        self.returned = []
        self.meanwhile = lambda: None
        self.next_address = 1 << 40
        self._allocate = ffi.callback("void *(void *, uint64_t)", self._give)
        self._free = ffi.callback("void (void *, void *, uint64_t)", self._take_back)

    def _give(self, _context, n_bytes):
        self.asked.append(n_bytes)
        self.meanwhile()
        if sum(self.regions.values()) + n_bytes > self.capacity:
            return ffi.NULL
        address = self.next_address + self.skew
        self.next_address += (n_bytes // 4096 + 2) * 4096  # regions never touch
        self.regions[address] = n_bytes
        self.given.append((address, n_bytes))
        return ffi.cast("void *", address)

    def _take_back(self, _context, address, n_bytes):
        self.meanwhile()
        number = int(ffi.cast("uintptr_t", address))
        self.returned.append((number, n_bytes, self.regions.pop(number, None)))

    @property
    def source(self):
        return RegionSource(self._allocate, self._free, ffi.NULL, owner=self)

    def arena(self, bytes_limit=1 << 40, **options):
        return Arena(self.source, bytes_limit, **options)


class Arena:
    """An arena (core/arena.h), as an object.

    Args:
        source: Where regions come from; it is called when an allocation needs one.
        bytes_limit: What regions together may reach.
        growth: Start with a small region; otherwise the first has the size of the limit.
        garbage_collection: Return unused regions when an allocation would fail without that.
        name: For messages, such as `GPU:0`.
    """

    __slots__ = ("__weakref__", "_arena", "_name", "_source")

    def __init__(self, source, bytes_limit, *, growth=True, garbage_collection=True, name="arena"):
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
        self._arena = ffi.gc(made[0], lib.mtf_arena_release)
        self._source = source

    def allocate(self, n_bytes):
        """Return the address of at least `n_bytes` bytes; 0, which may be freed too, for none."""
        try:
            return lib.mtf_arena_take(self._arena, n_bytes) or self._grow(n_bytes)
        except OverflowError:
            if n_bytes < 0:
                raise InvalidArgumentError(f"allocate: {n_bytes} bytes asked") from None
            return self._grow(_LARGEST_SIZE)

    def _grow(self, n_bytes):
        address = ffi.new("uintptr_t *")
        self._check(lib.mtf_arena_allocate(self._arena, n_bytes, address), "allocate")
        return int(address[0])

    def free(self, address):
        try:
            error = lib.mtf_arena_free(self._arena, address)
        except OverflowError:
            raise InvalidArgumentError(f"free: {address} is no address") from None
        if error:
            raise self._failed(error, "free")

    def allocated_bytes(self, address):
        """Return the size of the chunk behind a live allocation; 0 for any other address."""
        if not 0 <= address <= _LARGEST_SIZE:
            return 0
        return int(lib.mtf_arena_allocated_bytes(self._arena, address))

    def stats(self):
        """Return all figures of one moment."""
        stats = ffi.new("mtf_allocator_stats *")
        lib.mtf_arena_get_stats(self._arena, stats)
        return ArenaStats(*(getattr(stats, name) for name in _FIGURES))

    def picture(self):
        """Return a text that shows the regions, their chunks and what is in use."""
        text = ffi.gc(lib.mtf_arena_picture(self._arena), lib.mtf_string_free)
        if not text:
            raise OutOfMemoryError(f"no host memory for the picture of the arena {self._name}")
        return decode(ffi.string(text))

    def close(self):
        """Refuse further allocations; free the regions now or after the last live allocation."""
        self._check(lib.mtf_arena_close(self._arena), "close")

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def _check(self, error, operation):
        if error:
            raise self._failed(error, operation)

    def _failed(self, error, operation):
        failure = take_error(error, operation=operation)
        if isinstance(failure, ResourceExhaustedError):
            return OutOfMemoryError(failure.message, operation=operation)
        return failure
