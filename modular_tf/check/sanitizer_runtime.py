"""What a user has to do for a plugin that was built with a sanitizer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.native.library import process_symbol
from modular_tf.native.sanitizers import SANITIZERS, sanitizer_of_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.discovery.probe import Probe

_CXX_LIBRARIES = ("libstdc++.so", "libc++.so")
_LIBRARY_WORDS = ("asan", "lsan", "tsan")
_SETTINGS = {"AddressSanitizer": " ASAN_OPTIONS=detect_leaks=0"}  # Python frees little at its end


def lacking_runtime(probe: Probe) -> str | None:
    """Return what a report says where this process was started without the runtime; else None.

    Args:
        probe: Of the plugin.
    """
    symbols = () if probe.elf is None else {symbol.name for symbol in probe.elf.undefined}
    sanitizer = next((name for symbol, name in SANITIZERS.items() if symbol in symbols), None)
    if sanitizer is None or sanitizer == sanitizer_of_process():
        return None
    runtime = ":".join(_preloads(probe)) or "the runtime's shared library"
    return (
        f"built with {sanitizer}, whose runtime must be there before anything else: "
        f"run this again with LD_PRELOAD={runtime}{_SETTINGS.get(sanitizer, '')} before it"
    )


def _preloads(probe: Probe) -> Iterator[str]:
    """Yield the runtime, and the C++ library, whose functions the runtime looks for at once."""
    runtimes = [library for library in probe.libraries if is_sanitizer_library(library.name)]
    for library in runtimes:
        yield library.path
    if runtimes:
        yield from (
            library.path for library in probe.libraries if library.name.startswith(_CXX_LIBRARIES)
        )


def is_sanitizer_library(path: str) -> bool:
    """Return whether a library is a sanitizer's runtime with an allocator, by its name."""
    name = os.path.basename(path)
    return any(word in name for word in _LIBRARY_WORDS)


def looks_for_leaks(environment: Mapping[str, str]) -> bool:
    """Return whether a sanitizer looks for leaks at the end of this process.

    Args:
        environment: Of this process.
    """
    is_there = process_symbol("__lsan_do_leak_check") is not None
    return is_there and "detect_leaks=0" not in environment.get("ASAN_OPTIONS", "")
