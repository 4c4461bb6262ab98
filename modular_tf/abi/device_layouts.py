"""The structs of the device interface, in all four dialects (device-abi §A1 to §A5).

A struct that never changed stands once, with dialect `None`. The headers that we ship declare
`Dialect.DEVICE_V209`.
"""

from __future__ import annotations

from modular_tf.abi.layout import (
    Dialect,
    Field,
    Layout,
    boolean,
    functions,
    pointer,
    signed,
    sized_header,
    unsigned,
)

_RFC, _V205, _V207, _V209 = (
    Dialect.DEVICE_RFC,
    Dialect.DEVICE_V205,
    Dialect.DEVICE_V207,
    Dialect.DEVICE_V209,
)


def _sized(
    name: str,
    dialect: Dialect | None,
    size: int,
    *fields: Field,
    struct_size: int | None = None,
) -> Layout:
    """Return a struct that starts with struct_size and ext.

    Its macro says where its last field ends, unless `struct_size` says otherwise.
    """
    return Layout(name, dialect, size, (*sized_header(), *fields), struct_size or fields[-1].end)


_EXECUTOR_FRONT = """
    allocate deallocate host_memory_allocate host_memory_deallocate
    unified_memory_allocate unified_memory_deallocate get_allocator_stats device_memory_usage
    create_stream destroy_stream create_stream_dependency get_stream_status
    create_event destroy_event get_event_status record_event wait_for_event
    create_timer destroy_timer start_timer stop_timer
    memcpy_dtoh memcpy_htod memcpy_dtod sync_memcpy_dtoh sync_memcpy_htod sync_memcpy_dtod
    block_host_for_event block_host_until_done synchronize_all_activity
"""
_EXECUTOR_264 = functions(_EXECUTOR_FRONT + "host_callback", 16)
_EXECUTOR_288 = functions(_EXECUTOR_FRONT + "mem_zero memset memset32 host_callback", 16)

_NAME_AND_TYPE = (pointer("name", 16), pointer("type", 24))
_PLATFORM_FLAGS = (
    boolean("supports_unified_memory", 32),
    boolean("use_bfc_allocator", 33),
    boolean("force_memory_growth", 34),
)

_DEVICE_FRONT = (signed("ordinal", 16), pointer("device_handle", 24))
_DEVICE_NAMES = (
    pointer("hardware_name", 32),
    pointer("device_vendor", 40),
    pointer("pci_bus_id", 48),
)

_CREATE_AND_DESTROY = """
    create_device destroy_device create_device_fns destroy_device_fns
    create_stream_executor destroy_stream_executor create_timer_fns destroy_timer_fns
"""
_RFC_PLATFORM_FUNCTIONS = """
    create_device destroy_device create_stream_executor destroy_stream_executor
    create_timer_fns destroy_timer_fns
    create_allocator destroy_allocator create_custom_allocator destroy_custom_allocator
"""

_PLATFORMS = (
    _sized("SP_Platform", _RFC, 40, *_NAME_AND_TYPE, unsigned("visible_device_count", 32)),
    _sized("SP_Platform", _V205, 40, *_NAME_AND_TYPE, *_PLATFORM_FLAGS[:2]),
    _sized("SP_Platform", _V207, 40, *_NAME_AND_TYPE, *_PLATFORM_FLAGS[:2]),
    _sized("SP_Platform", _V209, 40, *_NAME_AND_TYPE, *_PLATFORM_FLAGS),
)
_PLATFORM_FNS = (
    # The RFC's macro stops at destroy_timer_fns although four more slots follow.
    _sized("SP_PlatformFns", _RFC, 96, *functions(_RFC_PLATFORM_FUNCTIONS, 16), struct_size=64),
    *(
        _sized(
            "SP_PlatformFns",
            dialect,
            88,
            *functions("get_device_count" + _CREATE_AND_DESTROY, 16),
        )
        for dialect in (_V205, _V207, _V209)
    ),
)
_EXECUTORS = (
    *(_sized("SP_StreamExecutor", d, 264, *_EXECUTOR_264) for d in (_RFC, _V205)),
    *(_sized("SP_StreamExecutor", d, 288, *_EXECUTOR_288) for d in (_V207, _V209)),
)
_DEVICES = (
    _sized("SP_Device", _RFC, 32, *_DEVICE_FRONT),
    *(
        _sized("SP_Device", dialect, 56, *_DEVICE_FRONT, *_DEVICE_NAMES)
        for dialect in (_V205, _V207, _V209)
    ),
)
_ALLOCATOR_STATS = Layout(
    "SP_AllocatorStats",
    None,
    96,
    (
        unsigned("struct_size", 0),
        signed("num_allocs", 8, 8),
        signed("bytes_in_use", 16, 8),
        signed("peak_bytes_in_use", 24, 8),
        signed("largest_alloc_size", 32, 8),
        signed("has_bytes_limit", 40, 1),
        signed("bytes_limit", 48, 8),
        signed("bytes_reserved", 56, 8),
        signed("peak_bytes_reserved", 64, 8),
        signed("has_bytes_reservable_limit", 72, 1),
        signed("bytes_reservable_limit", 80, 8),
        signed("largest_free_block_bytes", 88, 8),
    ),
    struct_size=96,
)
_REGISTRATION = _sized(
    "SE_PlatformRegistrationParams",
    None,
    64,
    signed("major_version", 16),
    signed("minor_version", 20),
    signed("patch_version", 24),
    pointer("platform", 32),
    pointer("platform_fns", 40),
    *functions("destroy_platform destroy_platform_fns", 48),
)
_SHARED = (
    _sized(
        "SP_DeviceMemoryBase",
        None,
        40,
        pointer("opaque", 16),
        unsigned("size", 24),
        unsigned("payload", 32),
    ),
    _sized("SP_TimerFns", None, 24, *functions("nanoseconds", 16)),
    _sized("SE_CreateDeviceParams", None, 32, signed("ordinal", 16), pointer("device", 24)),
    _sized("SE_CreateStreamExecutorParams", None, 24, pointer("stream_executor", 16)),
    # Not in the RFC; the same ever since.
    _sized("SE_CreateDeviceFnsParams", None, 24, pointer("device_fns", 16)),
    _sized(
        "SP_DeviceFns", None, 40, *functions("get_numa_node get_memory_bandwidth get_gflops", 16)
    ),
)
_RFC_ALLOCATORS = (
    _sized("SP_Allocator", _RFC, 24, boolean("supports_unified_memory", 16)),
    _sized(
        "SP_AllocatorFns",
        _RFC,
        80,
        *functions(" ".join(_EXECUTOR_FRONT.split()[:8]), 16),
    ),
    Layout("SP_CustomAllocator", _RFC, 16, sized_header(), struct_size=16),
    _sized(
        "SP_CustomAllocatorFns",
        _RFC,
        64,
        *functions(
            "allocate_raw deallocate_raw host_allocate_raw host_deallocate_raw"
            " get_allocator_stats device_memory_usage",
            16,
        ),
    ),
    _sized(
        "SE_CreateAllocatorParams",
        _RFC,
        32,
        pointer("allocator", 16),
        pointer("allocator_fns", 24),
    ),
    _sized(
        "SE_CreateCustomAllocatorParams",
        _RFC,
        32,
        pointer("custom_allocator", 16),
        pointer("custom_allocator_fns", 24),
    ),
)

DEVICE_LAYOUTS = (
    *_PLATFORMS,
    *_PLATFORM_FNS,
    *_EXECUTORS,
    *_DEVICES,
    _ALLOCATOR_STATS,
    _REGISTRATION,
    *_SHARED,
    *_RFC_ALLOCATORS,
)
