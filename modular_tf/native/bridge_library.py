"""The library that TensorFlow loads as a plugin to call this package."""

from __future__ import annotations


def bridge_path() -> str:
    """Return its file: that of the compiled core, which is in this process already."""
    from modular_tf.native import _core  # noqa: PLC0415  (maps it)

    return str(_core.__file__)
