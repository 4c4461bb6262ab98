"""Libraries of kernels that tests here load, and the host's device with one of them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf import PluginService
from modular_tf.discovery.file_identity import SETTLED_AFTER_NS
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.device import Device

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "plugins" / "kernel")


def kernel_library(name: str) -> Path:
    """Compile NAME.c or NAME.cc, once per machine, and return the library."""
    (source,) = (path for folder in _FOLDERS for path in folder.glob(f"{name}.c*"))
    options = ["-lpthread", "-lm"]
    is_cxx = source.suffix == ".cc"
    return link_library(f"lib{name}.so", [compile_object(source)], options, cxx=is_cxx)


def library_to_open_again(name: str) -> Path:
    """Compile a library of kernels that a program opens by its path once the host has mapped it.

    The host maps a file that has just changed from a private copy, which that path does not name.
    """
    library = kernel_library(name)
    enough_s = SETTLED_AFTER_NS / 1e9
    left_s = library.stat().st_ctime + enough_s - time.time()
    time.sleep(min(max(0.0, left_s), enough_s))  # also where the clock was set back since
    return library


@contextmanager
def host_device_with(library: str | Path) -> Iterator[Device]:
    """Open a service with the host's device and a library of kernels, and yield the device."""
    with PluginService() as service:
        service.load("host_device", str(library))
        yield service.device("CPU:0")
