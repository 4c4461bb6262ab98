"""Where the C headers for plugin authors lie, and the CMake package that finds them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["cmake_directory", "include_directory"]


def include_directory() -> str:
    """Return the directory to give to a compiler's `-I`, for `#include "modular_tf/….h"`.

    The headers define the C interface of plugins and need nothing else of this package: a plugin
    that is built with them runs in TensorFlow too. `modular_tf/dlpack.h` is DLPack's interface, by
    which libraries exchange tensors. [any thread]
    """
    return str(Path(__file__).resolve().parent / "include")


def cmake_directory() -> str:
    """Return the directory to give to CMake as `modular_tf_DIR`, for `find_package(modular_tf)`.

    It defines the target `modular_tf::headers`. Builds of wheels with scikit-build-core know it
    by themselves. [any thread]
    """
    return str(Path(__file__).resolve().parent / "cmake")
