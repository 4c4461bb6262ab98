"""The calls into a device plugin, by the address of the slot; they may come from any thread.

All of them release the GIL. A failed status, and a C++ exception that left the plugin, become
the error class of their code; an address that is not code is an `InternalError`, never a crash.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import check
from modular_tf.native.strings import encode

if TYPE_CHECKING:
    from collections.abc import Callable

_announce: Callable[[str], None] = lambda operation: None  # noqa: ARG005, E731  (a name for a slot)


def announce_calls(announce: Callable[[str], None]) -> None:
    """Set a function that is called with the operation before each call, on the same thread."""
    global _announce  # noqa: PLW0603  (one plugin and one listener, in a process of their own)
    _announce = announce


def _call(
    function: Any, *addresses: int, plugin: str, operation: str, results: tuple[Any, ...]
) -> None:
    """Call a function of the core on the address of a slot and those that the slot takes."""
    _announce(operation)
    pointers = (ffi.cast("void *", address) for address in addresses)
    error = function(named(plugin), encode(operation), *pointers, *results)
    check(error, plugin=plugin, operation=operation)


def _change(
    function: Any, *addresses: int, plugin: str, operation: str, exists: Any = ffi.NULL
) -> None:
    """Call a slot that creates or destroys something.

    `exists` is an `int32_t *`. It becomes 1 when a call that creates has succeeded, also where an
    interrupt keeps the caller from knowing. It becomes 0 when a function that destroys is called;
    where it is 0 already, the function is not called again.
    """
    _call(function, *addresses, plugin=plugin, operation=operation, results=(exists,))


create = partial(_change, lib.mtf_se_create)
"""Call a `create_*` slot of SP_PlatformFns: on the platform and its params struct."""
destroy = partial(_change, lib.mtf_se_destroy)
"""Call a `destroy_*` slot of SP_PlatformFns: on the platform and the struct."""
destroy_allocator = partial(_change, lib.mtf_se_destroy_allocator)
"""Call `destroy_allocator` or `destroy_custom_allocator` of the RFC: platform, allocator, fns."""
destroy_registered = partial(_change, lib.mtf_se_destroy_registered)
"""Call `destroy_platform` or `destroy_platform_fns` of the registration: on the struct."""


def init_plugin(entry: int, params: int, *, plugin: str) -> None:
    """Call `SE_InitPlugin` on an SE_PlatformRegistrationParams."""
    function = lib.mtf_se_init_plugin
    _call(function, entry, params, plugin=plugin, operation="SE_InitPlugin", results=())


def _answer(
    function: Any, operation: str, kind: str, unknown: float, *addresses: int, plugin: str
) -> Any:
    answer = ffi.new(kind, unknown)
    _call(function, *addresses, plugin=plugin, operation=operation, results=(answer,))
    return answer[0]


get_device_count: Callable[..., int] = partial(
    _answer, lib.mtf_se_get_device_count, "get_device_count", "int32_t *", 0
)
"""Return the number of devices; 0 when the plugin leaves the count untouched."""
get_numa_node: Callable[..., int] = partial(
    _answer, lib.mtf_se_get_numa_node, "get_numa_node", "int32_t *", -1
)
"""Return the NUMA node next to the device; negative when not known."""
get_memory_bandwidth: Callable[..., int] = partial(
    _answer, lib.mtf_se_get_memory_bandwidth, "get_memory_bandwidth", "int64_t *", -1
)
"""Return bytes/s of the device's own memory; negative when not known."""
get_gflops: Callable[..., float] = partial(
    _answer, lib.mtf_se_get_gflops, "get_gflops", "double *", -1.0
)
"""Return 1e9 floating point operations per second; negative when not known."""
