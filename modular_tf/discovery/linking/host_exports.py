"""What the host runtime exports to plugins instead of TensorFlow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.errors import NotFoundError

HOST_RUNTIME = "libmodular_tf_framework.so.2"

# The libraries of TensorFlow that plugins need and that the host runtime replaces.
REPLACED_SONAMES = frozenset(
    (
        HOST_RUNTIME,
        "libtensorflow_framework.so.2",  # what plugins should link with
        "libtensorflow_framework.so.1",
        "libtensorflow_cc.so.2",  # since TensorFlow 2.12 part of the C API lives there
        "libtensorflow.so.2",  # the stand-alone C library
        "_pywrap_tensorflow_internal.so",  # plugins for TensorFlow up to 2.11, ITEX up to 2.15
    )
)


@dataclass(frozen=True, slots=True)
class HostExports:
    """What the host exports to plugins."""

    symbols: frozenset[str] = frozenset()  # names of the exported functions and data
    sonames: frozenset[str] = REPLACED_SONAMES  # of needed libraries that the host replaces


@cache
def host_exports() -> HostExports:
    """Return what the installed host runtime exports; its file is read once. [any thread]"""
    for package in package_directories():
        path = os.path.join(package, "native", "lib", HOST_RUNTIME)
        if os.path.isfile(path):
            with ElfFile(path) as elf:
                return HostExports(elf.exports(), REPLACED_SONAMES)
    raise NotFoundError(
        f"{HOST_RUNTIME} is missing from this installation of modular_tf; install it again",
        path=HOST_RUNTIME,
    )
