"""The allocator that sees what a plugin does to the heap, where the process was started with it.

A process gets it by `LD_PRELOAD` (`preload_environment`); it cannot be had later. What it does
stands in `checking_allocator/checking_allocator.h`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol
from modular_tf.native.preloading import library_path, preloaded, with_preloaded
from modular_tf.native.sanitizers import is_sanitizer_library, sanitizer_of_process

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY = "libmodular_tf_checking_allocator.so"
_FOLDER = "check/native"
_LONGEST = 160
_CDECLS = {
    "enter": "void(*)(void)",
    "leave": "void(*)(void)",
    "count": "void(*)(void *)",
    "inspect": "uint64_t(*)(int)",
    "violation": "int(*)(uint64_t, char *, size_t)",
    "size_of": "int64_t(*)(void const *)",
}


class HeapUse(NamedTuple):
    """What the plugin has of the heap; the host's own memory is not counted.

    Attributes:
        live_blocks: Blocks that were allocated in brackets and not freed yet, by whomever.
        live_bytes: How much was asked for in them.
        allocations: Blocks that were ever allocated in brackets.
        violations: How often the heap was misused, in brackets or not.
    """

    live_blocks: int
    live_bytes: int
    allocations: int
    violations: int


class CheckingAllocator:
    """The allocator of this process. [any thread]"""

    def __init__(self, addresses: Mapping[str, int]) -> None:
        functions = {name: ffi.cast(_CDECLS[name], addresses[name]) for name in _CDECLS}
        self.enter: Any = functions["enter"]
        """Begin a bracket in the calling thread: what is allocated is the plugin's."""
        self.leave: Any = functions["leave"]
        """End it."""
        self._count = functions["count"]
        self._inspect = functions["inspect"]
        self._violation = functions["violation"]
        self._size_of = functions["size_of"]

    def use(self) -> HeapUse:
        """Return what the plugin has now."""
        counters = ffi.new("uint64_t[4]")
        self._count(counters)
        signed = ffi.cast("int64_t *", counters)
        return HeapUse(int(signed[0]), int(signed[1]), int(counters[2]), int(counters[3]))

    def inspect(self, *, deep: bool = False) -> int:
        """Look at the guards of the plugin's blocks; return how many violations there are by now.

        Args:
            deep: Look also at freed memory that is still kept, of the host too.
        """
        return int(self._inspect(int(deep)))

    def violation(self, index: int) -> str | None:
        """Return the sentence on a violation, counted from 0; None where it is not kept."""
        text = ffi.new("char[]", _LONGEST)
        if not self._violation(index, text, _LONGEST):
            return None
        return bytes(ffi.string(text)).decode()

    def size_of(self, address: int) -> int | None:
        """Return the bytes of the live heap block that begins there, None where none does."""
        size = int(self._size_of(ffi.cast("void *", address)))
        return None if size < 0 else size


@cache
def checking_allocator() -> CheckingAllocator | None:
    """Return the allocator of this process, None where it runs with the C library's."""
    found = {name: process_symbol(f"mtf_heap_{name}") for name in _CDECLS}
    addresses = {name: address for name, address in found.items() if address is not None}
    return CheckingAllocator(addresses) if len(addresses) == len(_CDECLS) else None


def allocator_path() -> str | None:
    """Return where the library is installed, None where this platform has none."""
    return library_path(LIBRARY, _FOLDER)


def preload_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose processes run with the checking allocator, if there is one.

    Args:
        environment: What they have besides; a library that is preloaded already stays so. Beside a
            sanitizer's there is no room for another allocator.
    """
    others = preloaded(environment)
    path = allocator_path()
    if not path or sanitizer_of_process() or any(map(is_sanitizer_library, others)):
        return dict(environment)
    return with_preloaded(environment, (path, *others))
