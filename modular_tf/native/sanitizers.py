"""Sanitizers: runtimes that watch over a whole process and end it where its code is wrong.

A plugin that was built with one needs its runtime in the process before anything else.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from modular_tf.native.library import process_symbol

if TYPE_CHECKING:
    from collections.abc import Mapping

SANITIZERS = {
    "__asan_init": "AddressSanitizer",
    "__hwasan_init": "HWAddressSanitizer",
    "__tsan_init": "ThreadSanitizer",
}
"""Those that have to come first, by the function that all code calls that was built with them."""

_OPTIONS = {
    # Python frees little at its end. What is said last is kept, so legends must not fill it. Checks
    # ask for more memory than there can be.
    "ASAN_OPTIONS": "detect_leaks=0:print_legend=0:allocator_may_return_null=1",
    "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


@cache
def sanitizer_of_process() -> str | None:
    """Return the name of the sanitizer that watches over this process, None for none."""
    found = (name for symbol, name in SANITIZERS.items() if process_symbol(symbol))
    return next(found, None)


def sanitizer_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose processes are ended by the first error that a sanitizer sees.

    Options that are set in `environment` stay as they are.
    """
    options = {
        name: f"{ours}:{environment[name]}" if environment.get(name) else ours
        for name, ours in _OPTIONS.items()
    }
    return {**environment, **options}


def looks_for_leaks(environment: Mapping[str, str]) -> bool:
    """Return whether a sanitizer looks for leaks of this process when it calls exit().

    `environment` has the variables that the process was started with.
    """
    options = ":".join(environment.get(name, "") for name in ("ASAN_OPTIONS", "LSAN_OPTIONS"))
    is_there = process_symbol("__lsan_do_leak_check") is not None
    return is_there and "detect_leaks=0" not in options


def is_sanitizer_library(path: str) -> bool:
    """Return whether a library is a sanitizer's runtime with an allocator, by its name."""
    name = os.path.basename(path)
    return any(word in name for word in ("asan", "lsan", "tsan"))
