"""The slots of a device plugin as functions that are called directly.

Unlike `core/executor.h` nothing stands between: no lifetime, no emulation, no judgement of what
comes back, no catching of exceptions. For checks that look at the plugin alone.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENTRY = "SE_PlatformRegistrationParams"
PLATFORM = "SP_PlatformFns"
DEVICE = "SP_DeviceFns"
EXECUTOR = "SP_StreamExecutor"
TIMER = "SP_TimerFns"
ALLOCATOR = "SP_AllocatorFns"
CUSTOM_ALLOCATOR = "SP_CustomAllocatorFns"

# The first parameter of each is the platform or the device; statuses come last.
_TWO = "void(*)(void *, void *)"
_THREE = "void(*)(void *, void *, void *)"
_FOUR = "void(*)(void *, void *, void *, void *)"
_BLOCK = "void *(*)(void *, uint64_t)"
_KNOWN = "uint8_t(*)(void *, void *)"
_USAGE = "uint8_t(*)(void *, void *, void *)"
_COPY = "void(*)(void *, void *, void *, void *, uint64_t, void *)"
_SYNC_COPY = "void(*)(void *, void *, void *, uint64_t, void *)"
_BLOCK_BY = "void *(*)(void *, void *, uint64_t)"  # the RFC's: with an allocator after the device

# Booleans come back as a byte, enumerations as an int: a plugin's may be any number.
_TYPES: Mapping[str, Mapping[str, str]] = {
    ENTRY: {
        "SE_InitPlugin": _TWO,
        "destroy_platform": "void(*)(void *)",
        "destroy_platform_fns": "void(*)(void *)",
    },
    PLATFORM: {
        "get_device_count": "void(*)(void *, int *, void *)",
        "create_device": _THREE,
        "destroy_device": _TWO,
        "create_device_fns": _THREE,
        "destroy_device_fns": _TWO,
        "create_stream_executor": _THREE,
        "destroy_stream_executor": _TWO,
        "create_timer_fns": _THREE,
        "destroy_timer_fns": _TWO,
    },
    DEVICE: {
        "get_numa_node": "int32_t(*)(void *)",
        "get_memory_bandwidth": "int64_t(*)(void *)",
        "get_gflops": "double(*)(void *)",
    },
    EXECUTOR: {
        "allocate": "void(*)(void *, uint64_t, int64_t, void *)",
        "deallocate": _TWO,
        "host_memory_allocate": _BLOCK,
        "host_memory_deallocate": _TWO,
        "unified_memory_allocate": _BLOCK,
        "unified_memory_deallocate": _TWO,
        "get_allocator_stats": _KNOWN,
        "device_memory_usage": _USAGE,
        "create_stream": _THREE,
        "destroy_stream": _TWO,
        "create_stream_dependency": _FOUR,
        "get_stream_status": _THREE,
        "create_event": _THREE,
        "destroy_event": _TWO,
        "get_event_status": "int(*)(void *, void *)",
        "record_event": _FOUR,
        "wait_for_event": _FOUR,
        "create_timer": _THREE,
        "destroy_timer": _TWO,
        "start_timer": _FOUR,
        "stop_timer": _FOUR,
        "memcpy_dtoh": _COPY,
        "memcpy_htod": _COPY,
        "memcpy_dtod": _COPY,
        "sync_memcpy_dtoh": _SYNC_COPY,
        "sync_memcpy_htod": _SYNC_COPY,
        "sync_memcpy_dtod": _SYNC_COPY,
        "block_host_for_event": _THREE,
        "block_host_until_done": _THREE,
        "synchronize_all_activity": _TWO,
        "mem_zero": "void(*)(void *, void *, void *, uint64_t, void *)",
        "memset": "void(*)(void *, void *, void *, uint8_t, uint64_t, void *)",
        "memset32": "void(*)(void *, void *, void *, uint32_t, uint64_t, void *)",
        "host_callback": "uint8_t(*)(void *, void *, void *, void *)",
    },
    TIMER: {"nanoseconds": "uint64_t(*)(void *)"},
    ALLOCATOR: {
        "allocate": "void(*)(void *, void *, uint64_t, int64_t, void *)",
        "deallocate": _THREE,
        "host_memory_allocate": _BLOCK_BY,
        "host_memory_deallocate": _THREE,
        "unified_memory_allocate": _BLOCK_BY,
        "unified_memory_deallocate": _THREE,
        "get_allocator_stats": "uint8_t(*)(void *, void *, void *)",
        "device_memory_usage": "uint8_t(*)(void *, void *, void *, void *)",
    },
    CUSTOM_ALLOCATOR: {
        "allocate_raw": "void *(*)(void *, void *, size_t, size_t)",
        "deallocate_raw": _THREE,
        "host_allocate_raw": _BLOCK_BY,
        "host_deallocate_raw": _THREE,
        "get_allocator_stats": "uint8_t(*)(void *, void *, void *)",
        "device_memory_usage": "uint8_t(*)(void *, void *, void *, void *)",
    },
}
"""The C types of what can be called, by the C name of its table."""

_CALLBACK = "void(void *, void *)"


@cache
def _type(table: str, slot: str) -> Any:
    return ffi.typeof(_TYPES[table][slot])


class RawDeviceSlots:
    """The functions of a platform's tables. [any thread]

    Args:
        addresses: For each table's C name the address of each of its slots, 0 for NULL.
    """

    def __init__(self, addresses: Mapping[str, Mapping[str, int]]) -> None:
        self._addresses = {table: dict(slots) for table, slots in addresses.items()}

    def add(self, table: str, slots: Mapping[str, int]) -> None:
        """Add a table that the plugin has filled later."""
        self._addresses[table] = dict(slots)

    def has(self, slot: str) -> bool:
        """Return whether a slot is set, in any table."""
        return any(slots.get(slot) for slots in self._addresses.values())

    def function(self, table: str, slot: str) -> Any:
        """Return a slot as a function that releases the GIL, None where it is NULL."""
        address = self._addresses.get(table, {}).get(slot)
        return ffi.cast(_type(table, slot), address) if address else None


def as_pointer(address: int) -> Any:
    """Return an address, or an opaque handle, as a pointer that can be handed to a slot."""
    return ffi.cast("void *", address)


def as_address(pointer: Any) -> int:
    """Return the number of a pointer that a slot returned; 0 for NULL."""
    return int(ffi.cast("uintptr_t", pointer))


def view_of(address: int, size: int) -> memoryview:
    """Return memory that is trusted to be there, writable; nothing keeps it."""
    return memoryview(ffi.buffer(ffi.cast("char *", address), size)).cast("B")


def int_out(preset: int) -> Any:
    """Return an `int *` for an answer."""
    return ffi.new("int *", preset)


def callback(function: Callable[[Any], None]) -> Any:
    """Return an `SE_StatusCallbackFn` that calls a Python function with the `TF_Status *`.

    It is called by any thread of the plugin's, with the GIL. The caller keeps the result as long as
    the plugin may use it. The function must not raise.
    """
    return ffi.callback(_CALLBACK, lambda _argument, status: function(status))
