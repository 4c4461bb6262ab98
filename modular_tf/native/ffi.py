"""The one door to the compiled core: `ffi` and `lib`."""

from __future__ import annotations

from modular_tf.native._core import ffi, lib

__all__ = ["ffi", "lib"]
