"""What the host runtime offers to plugins in the place of TensorFlow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.errors import NotFoundError

__all__ = ["HOST_RUNTIME", "STAND_IN_SONAMES", "HostOffer", "host_offer"]

HOST_RUNTIME = "libmodular_tf_framework.so.2"

# The libraries of TensorFlow that plugins name as needed and that the host stands in for.
STAND_IN_SONAMES = frozenset(
    (
        HOST_RUNTIME,
        "libtensorflow_framework.so.2",  # what plugins are told to link with
        "libtensorflow_framework.so.1",
        "libtensorflow_cc.so.2",  # since TensorFlow 2.12 part of the C API lives there
        "libtensorflow.so.2",  # the stand-alone C library
        "_pywrap_tensorflow_internal.so",  # plugins for TensorFlow up to 2.11, ITEX up to 2.15
    )
)


@dataclass(frozen=True, slots=True)
class HostOffer:
    """What plugins get from the host.

    Attributes:
        symbols: Names of the functions and data offered.
        sonames: Names of needed libraries that the host stands in for.
        versions: Symbol versions offered; empty if a version does not matter.
    """

    symbols: frozenset[str] = frozenset()
    sonames: frozenset[str] = STAND_IN_SONAMES
    versions: frozenset[str] = frozenset()


@cache
def host_offer() -> HostOffer:
    """Return what the installed host runtime offers; read from its file once. [any thread].

    Raises:
        NotFoundError: This package is installed without its host runtime.
        ElfError: The file is damaged.
    """
    for package in package_directories():
        path = os.path.join(package, "native", "lib", HOST_RUNTIME)
        if os.path.isfile(path):
            with ElfFile(path) as elf:
                return HostOffer(elf.exports(), STAND_IN_SONAMES, elf.version_definitions())
    raise NotFoundError(
        f"{HOST_RUNTIME} is missing from this installation of modular_tf; install it again",
        path=HOST_RUNTIME,
    )
