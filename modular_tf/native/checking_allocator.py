"""The allocator that sees what a plugin does to the heap, where the process was started with it.

A process gets it by `LD_PRELOAD` (`preload_environment`); it cannot be had later. What it does
stands in `checking_allocator/checking_allocator.h`.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol
from modular_tf.native.sanitizers import is_sanitizer_library, sanitizer_of_process

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY = "libmodular_tf_checking_allocator.so"
_PRELOAD = "LD_PRELOAD"
_SEPARATORS = " :"  # of LD_PRELOAD, which knows no way to quote them
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
    import modular_tf.native as package  # noqa: PLC0415  (an editable install has two folders)
    from modular_tf.native import _core  # noqa: PLC0415  (its folder is where CMake installs)

    folders = (*package.__path__, os.path.dirname(_core.__file__ or ""))
    paths = (os.path.join(folder, "lib", LIBRARY) for folder in folders)
    return next((path for path in paths if os.path.isfile(path)), None)


def preload_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose processes run with the checking allocator, if there is one.

    Args:
        environment: What they have besides; a library that is preloaded already stays so. Beside a
            sanitizer's there is no room for another allocator.
    """
    path = allocator_path()
    if path is None or any(mark in path for mark in _SEPARATORS):
        return dict(environment)
    others = _listed(environment.get(_PRELOAD, ""))
    if sanitizer_of_process() or any(is_sanitizer_library(other) for other in others):
        return dict(environment)
    return {**environment, _PRELOAD: ":".join([path, *others])}


def forget_preload() -> None:
    """Let programs that this process starts run with the allocator that they would have had.

    The process itself keeps its own.
    """
    listed = _listed(os.environ.get(_PRELOAD, ""))
    kept = [path for path in listed if os.path.basename(path) != LIBRARY]
    if kept:
        os.environ[_PRELOAD] = ":".join(kept)
    else:
        os.environ.pop(_PRELOAD, None)


def _listed(preload: str) -> list[str]:
    for mark in _SEPARATORS:
        preload = preload.replace(mark, ":")
    return [path for path in preload.split(":") if path]
