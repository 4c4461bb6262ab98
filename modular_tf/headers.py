"""Where the C headers for plugin authors lie."""

from __future__ import annotations

from pathlib import Path

__all__ = ["include_directory"]


def include_directory() -> str:
    """Return the directory to give to a compiler's `-I`, for `#include "modular_tf/….h"`.

    The headers define the C interface of plugins and need nothing else of this package: a plugin
    that is built with them runs in TensorFlow too. [any thread]
    """
    return str(Path(__file__).resolve().parent / "include")
