"""Functions to call when the compiled core is loaded, without loading it now.

Not in the package's `__init__`: processes that try plugins import its modules without that file.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

waiting: list[Callable[[], None]] = []
"""What `modular_tf.native.ffi` calls when it is imported."""


def when_loaded(call: Callable[[], None]) -> None:
    """Call a function now if the core is loaded, otherwise by the thread that loads it."""
    if "modular_tf.native.ffi" in sys.modules:
        call()
    else:
        waiting.append(call)
