"""The only native code, and the only doors to it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

waiting: list[Callable[[], None]] = []
"""What `modular_tf.native.ffi` calls when it is imported."""


def when_loaded(call: Callable[[], None]) -> None:
    """Call a function now if the core is loaded, otherwise by the thread that loads it."""
    if f"{__name__}.ffi" in sys.modules:
        call()
    else:
        waiting.append(call)
