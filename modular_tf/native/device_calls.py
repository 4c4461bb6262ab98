"""The calls into a device plugin, by the address of the slot; they may come from any thread.

All of them release the GIL. A failed status, and a C++ exception that left the plugin, become
the error class of their code; an address that is not code is an `InternalError`, never a crash.
"""

from __future__ import annotations

from typing import Any

from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import check


def _pointer(address: int) -> Any:
    return ffi.cast("void *", address)


def init_plugin(entry: int, params: int, *, plugin: str) -> None:
    """Call `SE_InitPlugin` on an SE_PlatformRegistrationParams."""
    error = lib.mtf_se_init_plugin(_pointer(entry), _pointer(params))
    check(error, plugin=plugin, operation="SE_InitPlugin")


def get_device_count(slot: int, platform: int, *, plugin: str) -> int:
    """Return the number of devices; 0 when the plugin leaves the count untouched."""
    count = ffi.new("int32_t *", 0)
    error = lib.mtf_se_get_device_count(_pointer(slot), _pointer(platform), count)
    check(error, plugin=plugin, operation="get_device_count")
    return int(count[0])


def create(slot: int, platform: int, params: int, *, plugin: str, operation: str) -> None:
    """Call one of the `create_*` slots of SP_PlatformFns on its params struct."""
    error = lib.mtf_se_create(_pointer(slot), _pointer(platform), _pointer(params))
    check(error, plugin=plugin, operation=operation)


def destroy(slot: int, platform: int, object_: int, *, plugin: str, operation: str) -> None:
    """Call one of the `destroy_*` slots of SP_PlatformFns."""
    error = lib.mtf_se_destroy(_pointer(slot), _pointer(platform), _pointer(object_))
    check(error, plugin=plugin, operation=operation)


def destroy_registered(slot: int, object_: int, *, plugin: str, operation: str) -> None:
    """Call `destroy_platform` or `destroy_platform_fns` of the registration."""
    error = lib.mtf_se_destroy_registered(_pointer(slot), _pointer(object_))
    check(error, plugin=plugin, operation=operation)


def get_numa_node(slot: int, device: int, *, plugin: str) -> int:
    """Return the NUMA node next to the device; negative when not known."""
    node = ffi.new("int32_t *", -1)
    error = lib.mtf_se_get_numa_node(_pointer(slot), _pointer(device), node)
    check(error, plugin=plugin, operation="get_numa_node")
    return int(node[0])


def get_memory_bandwidth(slot: int, device: int, *, plugin: str) -> int:
    """Return bytes/s of the device's own memory; negative when not known."""
    bandwidth = ffi.new("int64_t *", -1)
    error = lib.mtf_se_get_memory_bandwidth(_pointer(slot), _pointer(device), bandwidth)
    check(error, plugin=plugin, operation="get_memory_bandwidth")
    return int(bandwidth[0])


def get_gflops(slot: int, device: int, *, plugin: str) -> float:
    """Return 1e9 floating point operations per second; negative when not known."""
    gflops = ffi.new("double *", -1.0)
    error = lib.mtf_se_get_gflops(_pointer(slot), _pointer(device), gflops)
    check(error, plugin=plugin, operation="get_gflops")
    return float(gflops[0])
