"""Access to the compiled core: `ffi` and `lib`."""

from __future__ import annotations

# First, since it refuses interpreters within the interpreter: modules that use the core act at the
# interpreter's end on what all of them share.
from modular_tf.native import _dlpack  # noqa: F401  (for what its import does)
from modular_tf.native._core import ffi, lib
from modular_tf.native.load_callbacks import waiting

__all__ = ["ffi", "lib"]

while waiting:
    waiting.pop()()
