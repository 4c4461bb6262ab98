"""The host runtime: the library that offers plugins the C API that they import.

It is mapped when the first plugin is, with local visibility and a name of its own, so that no
other library in the process ever binds to it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import Library
from modular_tf.native.plugin_messages import attach_messages
from modular_tf.native.strings import encode

SONAME = "libmodular_tf_framework.so.2"
TENSORFLOW_SONAME = "libtensorflow_framework.so.2"
_lock = ForkLock()


@cache
def runtime_path() -> Path:
    """Return where the host runtime is installed.

    `FileNotFoundError` if the installation is broken.
    """
    import modular_tf.native as package  # noqa: PLC0415  (an editable install has two folders)

    for folder in package.__path__:
        path = Path(folder, "lib", SONAME)
        if path.is_file():
            return path
    path = Path(core_path()).parent / "lib" / SONAME  # where CMake installs
    if not path.is_file():
        raise FileNotFoundError(f"{SONAME} is missing from the installation: {path}")
    return path


def core_path() -> str:
    """Return the file of the compiled core, which is in this process already."""
    from modular_tf.native import _core  # noqa: PLC0415  (maps it)

    return str(_core.__file__)


def load_runtime() -> Library:
    """Map the host runtime, once. [any thread]"""
    with _lock:
        return _map_runtime()


@cache
def _map_runtime() -> Library:
    runtime = Library.open(str(runtime_path()))
    attach_messages(runtime)
    lib.mtf_kernels_attach(ffi.cast("void *", runtime.symbol("mtf_kernel_host_table")))
    return runtime


def absent_function(name: str, library: str) -> int:
    """Return the address of the function that replaces an undefined one for a plugin.

    It reports that it was called, by its name, and returns 0: the call into the plugin that is
    under way fails (KN-100), or the log has a line. `library` is the plugin's file. [any thread]
    """
    load_runtime()
    return int(ffi.cast("uintptr_t", lib.mtf_absent_function(encode(name), encode(library))))


def guarded_stream_function(name: str, *, own_scope_first: bool) -> int | None:
    """Return the address of a function that stands in for one of the C++ library's for a plugin.

    It does the same, and returns at once for a stream that is not there. The name is mangled;
    `own_scope_first` says that the plugin is bound to its own scope before the process's. None if
    there is no such function, or the plugin would not be bound to it. [any thread]
    """
    function = lib.mtf_guarded_stream_function(encode(name), int(own_scope_first))
    return int(ffi.cast("uintptr_t", function)) or None


def tensorflow_is_loaded() -> bool:
    """Return whether a real TensorFlow is mapped into this process."""
    return Library.find(TENSORFLOW_SONAME) is not None
