"""The core's arena with sources of one's own: over host memory, and over addresses on paper."""

from __future__ import annotations

import ctypes
from collections import namedtuple
from functools import cache
from pathlib import Path

from modular_tf.errors import OutOfMemoryError, ResourceExhaustedError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import take_error
from modular_tf.native.strings import decode
from tests.fixtures.compiler import compile_object, link_library

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_FIGURES = tuple(name for name, _ in ffi.typeof("mtf_allocator_stats").fields)
ArenaStats = namedtuple("ArenaStats", _FIGURES)  # noqa: PYI024  (of the C struct)


class HostMemory:
    """The host's own memory as a source of regions. [any thread]"""

    def __init__(self):
        self.context = ffi.new("uint64_t *")
        self.allocate = _function("mtf_region_allocate", "host_memory_allocate")
        self.free = _function("mtf_region_free", "host_memory_free")

    @property
    def bytes_allocated(self):
        """Bytes in regions that have not come back."""
        return int(self.context[0])


@cache
def _function(kind, name):
    source = Path(__file__).with_name("host_memory.c")
    made = compile_object(source, options=["-fvisibility=default"])
    library = ctypes.CDLL(str(link_library("libmtf_host_memory.so", [made])))
    return ffi.cast(kind, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


class PaperMemory:
    """Regions that exist on paper only: an arena never touches the memory that it manages.

    Attributes:
        capacity: Regions together are never larger.
        skew: Added to each address, which is a multiple of 4 KiB otherwise.
        asked: The sizes of all requests, in order.
        regions: Address to size of what was given and did not come back.
        returned: Address and size that came back, and the size that had been given there.
    """

    def __init__(self, capacity=1 << 50, *, skew=0):
        self.capacity = capacity
        self.skew = skew
        self.asked = []
        self.regions = {}
        self.returned = []
        self.next_address = 1 << 40
        self.context = ffi.NULL
        self.allocate = ffi.callback("void *(void *, uint64_t)", self._give)
        self.free = ffi.callback("void (void *, void *, uint64_t)", self._take_back)

    def _give(self, _context, n_bytes):
        self.asked.append(n_bytes)
        if sum(self.regions.values()) + n_bytes > self.capacity:
            return ffi.NULL
        address = self.next_address + self.skew
        self.next_address += (n_bytes // 4096 + 2) * 4096  # regions never touch
        self.regions[address] = n_bytes
        return ffi.cast("void *", address)

    def _take_back(self, _context, address, n_bytes):
        number = int(ffi.cast("uintptr_t", address))
        self.returned.append((number, n_bytes, self.regions.pop(number, None)))

    def arena(self, bytes_limit=1 << 40, **options):
        return Arena(self, bytes_limit, **options)


class Arena:
    """An arena (core/arena.h), as an object.

    Args:
        source: Where regions come from: its functions `allocate` and `free` are called with its
            `context` on any thread, when an allocation needs them.
        bytes_limit: What regions together may reach.
        growth: Start with a small region; otherwise the first has the size of the limit.
        garbage_collection: Return unused regions when an allocation would fail without that.
    """

    __slots__ = ("__weakref__", "_arena", "_source")

    def __init__(self, source, bytes_limit, *, growth=True, garbage_collection=True):
        text = ffi.new("char[]", b"arena")
        options = ffi.new(
            "mtf_arena_options *",
            {
                "name": text,
                "bytes_limit": bytes_limit,
                "growth": growth,
                "garbage_collection": garbage_collection,
                "allocate": source.allocate,
                "free": source.free,
                "context": source.context,
            },
        )
        made = ffi.new("mtf_arena **")
        self._check(lib.mtf_arena_new(options, made), "make")
        # The collector may end these in any order: the core counts who needs the arena.
        self._arena = ffi.gc(made[0], lib.mtf_arena_release)
        self._source = source

    def allocate(self, n_bytes):
        """Return the address of at least `n_bytes` bytes; 0, which may be freed too, for none."""
        if address := lib.mtf_arena_take(self._arena, n_bytes):
            return address
        address = ffi.new("uintptr_t *")
        self._check(lib.mtf_arena_allocate(self._arena, n_bytes, address), "allocate")
        return int(address[0])

    def free(self, address):
        self._check(lib.mtf_arena_free(self._arena, address), "free")

    def allocated_bytes(self, address):
        """Return the size of the chunk behind a live allocation; 0 for any other address."""
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
            raise OutOfMemoryError("no host memory for the picture")
        return decode(ffi.string(text))

    def close(self):
        """Refuse further allocations; free the regions now or after the last live allocation."""
        self._check(lib.mtf_arena_close(self._arena), "close")

    @staticmethod
    def _check(error, operation):
        if error:
            failure = take_error(error, operation=operation)
            if isinstance(failure, ResourceExhaustedError):
                raise OutOfMemoryError(failure.message, operation=operation)
            raise failure
