"""The calls into a device plugin, by the address of the slot; they may come from any thread.

All of them release the GIL. A failed status, and a C++ exception that left the plugin, become
the error class of their code; an address that is not code is an `InternalError`, never a crash.
"""

from __future__ import annotations

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


def _called(plugin: str, operation: str) -> tuple[Any, bytes]:
    return named(plugin), encode(operation)


def _pointer(address: int) -> Any:
    return ffi.cast("void *", address)


def init_plugin(entry: int, params: int, *, plugin: str) -> None:
    """Call `SE_InitPlugin` on an SE_PlatformRegistrationParams."""
    _announce("SE_InitPlugin")
    error = lib.mtf_se_init_plugin(
        *_called(plugin, "SE_InitPlugin"), _pointer(entry), _pointer(params)
    )
    check(error, plugin=plugin, operation="SE_InitPlugin")


def get_device_count(slot: int, platform: int, *, plugin: str) -> int:
    """Return the number of devices; 0 when the plugin leaves the count untouched."""
    count = ffi.new("int32_t *", 0)
    _announce("get_device_count")
    error = lib.mtf_se_get_device_count(
        *_called(plugin, "get_device_count"), _pointer(slot), _pointer(platform), count
    )
    check(error, plugin=plugin, operation="get_device_count")
    return int(count[0])


def create(
    slot: int,
    platform: int,
    params: int,
    *,
    plugin: str,
    operation: str,
    exists: Any = ffi.NULL,
) -> None:
    """Call one of the `create_*` slots of SP_PlatformFns on its params struct.

    `exists` is an `int32_t *` that becomes 1 when the call has succeeded, also where an interrupt
    keeps the caller from knowing.
    """
    _announce(operation)
    error = lib.mtf_se_create(
        *_called(plugin, operation), _pointer(slot), _pointer(platform), _pointer(params), exists
    )
    check(error, plugin=plugin, operation=operation)


def destroy(
    slot: int,
    platform: int,
    object_: int,
    *,
    plugin: str,
    operation: str,
    exists: Any = ffi.NULL,
) -> None:
    """Call one of the `destroy_*` slots of SP_PlatformFns.

    `exists` is an `int32_t *` that becomes 0 when the function is called; where it is 0 already,
    the function is not called again.
    """
    _announce(operation)
    error = lib.mtf_se_destroy(
        *_called(plugin, operation), _pointer(slot), _pointer(platform), _pointer(object_), exists
    )
    check(error, plugin=plugin, operation=operation)


def destroy_allocator(
    slot: int,
    platform: int,
    allocator: int,
    fns: int,
    *,
    plugin: str,
    operation: str,
    exists: Any = ffi.NULL,
) -> None:
    """Call `destroy_allocator` or `destroy_custom_allocator` of the RFC; see `destroy`."""
    _announce(operation)
    error = lib.mtf_se_destroy_allocator(
        *_called(plugin, operation),
        _pointer(slot),
        _pointer(platform),
        _pointer(allocator),
        _pointer(fns),
        exists,
    )
    check(error, plugin=plugin, operation=operation)


def destroy_registered(
    slot: int, object_: int, *, plugin: str, operation: str, exists: Any = ffi.NULL
) -> None:
    """Call `destroy_platform` or `destroy_platform_fns` of the registration; see `destroy`."""
    _announce(operation)
    error = lib.mtf_se_destroy_registered(
        *_called(plugin, operation), _pointer(slot), _pointer(object_), exists
    )
    check(error, plugin=plugin, operation=operation)


def get_numa_node(slot: int, device: int, *, plugin: str) -> int:
    """Return the NUMA node next to the device; negative when not known."""
    node = ffi.new("int32_t *", -1)
    _announce("get_numa_node")
    error = lib.mtf_se_get_numa_node(
        *_called(plugin, "get_numa_node"), _pointer(slot), _pointer(device), node
    )
    check(error, plugin=plugin, operation="get_numa_node")
    return int(node[0])


def get_memory_bandwidth(slot: int, device: int, *, plugin: str) -> int:
    """Return bytes/s of the device's own memory; negative when not known."""
    bandwidth = ffi.new("int64_t *", -1)
    _announce("get_memory_bandwidth")
    error = lib.mtf_se_get_memory_bandwidth(
        *_called(plugin, "get_memory_bandwidth"), _pointer(slot), _pointer(device), bandwidth
    )
    check(error, plugin=plugin, operation="get_memory_bandwidth")
    return int(bandwidth[0])


def get_gflops(slot: int, device: int, *, plugin: str) -> float:
    """Return 1e9 floating point operations per second; negative when not known."""
    gflops = ffi.new("double *", -1.0)
    _announce("get_gflops")
    error = lib.mtf_se_get_gflops(
        *_called(plugin, "get_gflops"), _pointer(slot), _pointer(device), gflops
    )
    check(error, plugin=plugin, operation="get_gflops")
    return float(gflops[0])
