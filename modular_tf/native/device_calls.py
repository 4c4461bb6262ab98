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
    signature: int, slot: int, *addresses: int, plugin: str, operation: str, exists: Any = ffi.NULL
) -> None:
    """Call a slot on the addresses that it takes.

    `exists` is an `int32_t *`. It becomes 1 when a call that creates has succeeded, also where an
    interrupt keeps the caller from knowing. It becomes 0 when a function that destroys is called;
    where it is 0 already, the function is not called again.
    """
    _announce(operation)
    first, second, third = (ffi.cast("void *", at) for at in (*addresses, 0, 0)[:3])
    code = ffi.cast("void *", slot)
    name = encode(operation)
    error = lib.mtf_se_call(named(plugin), name, code, signature, first, second, third, exists)
    check(error, plugin=plugin, operation=operation)


create = partial(_call, lib.MTF_SE_CREATE)
"""Call a `create_*` slot of SP_PlatformFns: on the platform and its params struct."""
destroy = partial(_call, lib.MTF_SE_DESTROY)
"""Call a `destroy_*` slot of SP_PlatformFns: on the platform and the struct."""
destroy_allocator = partial(_call, lib.MTF_SE_DESTROY_TWO)
"""Call `destroy_allocator` or `destroy_custom_allocator` of the RFC: platform, allocator, fns."""
destroy_registered = partial(_call, lib.MTF_SE_DESTROY_ALONE)
"""Call `destroy_platform` or `destroy_platform_fns` of the registration: on the struct."""


def init_plugin(entry: int, params: int, *, plugin: str) -> None:
    """Call `SE_InitPlugin` on an SE_PlatformRegistrationParams."""
    _call(lib.MTF_SE_INIT, entry, params, plugin=plugin, operation="SE_InitPlugin")


def get_device_count(slot: int, platform: int, *, plugin: str) -> int:
    """Return the number of devices; 0 when the plugin leaves the count untouched."""
    count = ffi.new("int32_t *")
    at = int(ffi.cast("uintptr_t", count))
    _call(lib.MTF_SE_CREATE, slot, platform, at, plugin=plugin, operation="get_device_count")
    return int(count[0])


def _answer(operation: str, kind: str, number: int, slot: int, device: int, *, plugin: str) -> Any:
    _announce(operation)
    answer = ffi.new(kind)
    code, place = ffi.cast("void *", slot), ffi.cast("void *", device)
    error = lib.mtf_se_ask(named(plugin), encode(operation), code, place, number, answer)
    check(error, plugin=plugin, operation=operation)
    return answer[0]


get_numa_node: Callable[..., int] = partial(_answer, "get_numa_node", "int32_t *", lib.MTF_SE_INT32)
"""Return the NUMA node next to the device; negative when not known."""
get_memory_bandwidth: Callable[..., int] = partial(
    _answer, "get_memory_bandwidth", "int64_t *", lib.MTF_SE_INT64
)
"""Return bytes/s of the device's own memory; negative when not known."""
get_gflops: Callable[..., float] = partial(_answer, "get_gflops", "double *", lib.MTF_SE_DOUBLE)
"""Return 1e9 floating point operations per second; negative when not known."""
