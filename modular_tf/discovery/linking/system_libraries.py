"""The system's library directories, by conventions and by the linker's cache."""

from __future__ import annotations

import os
import sys
from functools import cache

from modular_tf.discovery.linking.linker_cache import read_linker_cache

__all__ = ["default_library_directories", "is_of_system", "library_folders"]


def is_of_system(path: str) -> bool:
    """Return whether a library lies where the system keeps libraries; links are not followed.

    A path with `..` is none of the system's, whatever it begins with.

    Those places are the linker's cache and its default directories, with what they hold for
    particular processors.
    """
    if "/../" in path:
        return False
    directory = os.path.dirname(path).partition("/glibc-hwcaps/")[0]
    if directory in default_library_directories():
        return True
    return path in read_linker_cache().get(os.path.basename(path), ())


@cache
def default_library_directories() -> tuple[str, ...]:
    """Return the directories that the linker searches last."""
    return tuple(
        f"{root}/{folder}" for root in ("", "/usr", "/usr/local") for folder in library_folders()
    )


@cache
def library_folders() -> tuple[str, ...]:
    """Return the names of library directories in distributions: Debian, Fedora, all others."""
    triplet = getattr(sys.implementation, "_multiarch", "")
    return (*((f"lib/{triplet}",) if triplet else ()), "lib64", "lib")
