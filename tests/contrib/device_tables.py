"""The device interface of TensorFlow 2.9 to 2.21 as ctypes sees it; see `filesystem_tables`."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int8,
    c_int32,
    c_int64,
    c_size_t,
    c_ubyte,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

_D, _S = c_void_p, c_void_p
_STREAM = _EVENT = _TIMER = c_void_p


def _struct(name: str, fields: list[tuple[str, Any]]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": [("struct_size", c_size_t), *fields]})


def _slot(name: str, result: Any, *arguments: Any) -> tuple[str, Any]:
    return name, ctypes.CFUNCTYPE(result, *arguments)


_EXT = ("ext", c_void_p)

Memory = _struct("Memory", [_EXT, ("opaque", c_void_p), ("size", c_uint64), ("payload", c_uint64)])
Statistics = _struct(
    "Statistics",
    [
        ("num_allocs", c_int64),
        ("bytes_in_use", c_int64),
        ("peak_bytes_in_use", c_int64),
        ("largest_alloc_size", c_int64),
        ("has_bytes_limit", c_int8),
        ("bytes_limit", c_int64),
        ("bytes_reserved", c_int64),
        ("peak_bytes_reserved", c_int64),
        ("has_bytes_reservable_limit", c_int8),
        ("bytes_reservable_limit", c_int64),
        ("largest_free_block_bytes", c_int64),
    ],
)
Device = _struct(
    "Device",
    [
        _EXT,
        ("ordinal", c_int32),
        ("device_handle", c_void_p),
        ("hardware_name", c_char_p),
        ("device_vendor", c_char_p),
        ("pci_bus_id", c_char_p),
    ],
)
CreateDevice = _struct("CreateDevice", [_EXT, ("ordinal", c_int32), ("device", POINTER(Device))])
DeviceFns = _struct(
    "DeviceFns",
    [
        _EXT,
        _slot("get_numa_node", c_int32, _D),
        _slot("get_memory_bandwidth", c_int64, _D),
        _slot("get_gflops", c_double, _D),
    ],
)
CreateDeviceFns = _struct("CreateDeviceFns", [_EXT, ("device_fns", POINTER(DeviceFns))])
TimerFns = _struct("TimerFns", [_EXT, _slot("nanoseconds", c_uint64, _TIMER)])

Callback = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_M = POINTER(Memory)
Executor = _struct(
    "Executor",
    [
        _EXT,
        _slot("allocate", None, _D, c_uint64, c_int64, _M),
        _slot("deallocate", None, _D, _M),
        _slot("host_memory_allocate", c_void_p, _D, c_uint64),
        _slot("host_memory_deallocate", None, _D, c_void_p),
        _slot("unified_memory_allocate", c_void_p, _D, c_uint64),
        _slot("unified_memory_deallocate", None, _D, c_void_p),
        _slot("get_allocator_stats", c_ubyte, _D, POINTER(Statistics)),
        _slot("device_memory_usage", c_ubyte, _D, POINTER(c_int64), POINTER(c_int64)),
        _slot("create_stream", None, _D, POINTER(_STREAM), _S),
        _slot("destroy_stream", None, _D, _STREAM),
        _slot("create_stream_dependency", None, _D, _STREAM, _STREAM, _S),
        _slot("get_stream_status", None, _D, _STREAM, _S),
        _slot("create_event", None, _D, POINTER(_EVENT), _S),
        _slot("destroy_event", None, _D, _EVENT),
        _slot("get_event_status", c_int, _D, _EVENT),
        _slot("record_event", None, _D, _STREAM, _EVENT, _S),
        _slot("wait_for_event", None, _D, _STREAM, _EVENT, _S),
        _slot("create_timer", None, _D, POINTER(_TIMER), _S),
        _slot("destroy_timer", None, _D, _TIMER),
        _slot("start_timer", None, _D, _STREAM, _TIMER, _S),
        _slot("stop_timer", None, _D, _STREAM, _TIMER, _S),
        _slot("memcpy_dtoh", None, _D, _STREAM, c_void_p, _M, c_uint64, _S),
        _slot("memcpy_htod", None, _D, _STREAM, _M, c_void_p, c_uint64, _S),
        _slot("memcpy_dtod", None, _D, _STREAM, _M, _M, c_uint64, _S),
        _slot("sync_memcpy_dtoh", None, _D, c_void_p, _M, c_uint64, _S),
        _slot("sync_memcpy_htod", None, _D, _M, c_void_p, c_uint64, _S),
        _slot("sync_memcpy_dtod", None, _D, _M, _M, c_uint64, _S),
        _slot("block_host_for_event", None, _D, _EVENT, _S),
        _slot("block_host_until_done", None, _D, _STREAM, _S),
        _slot("synchronize_all_activity", None, _D, _S),
        _slot("mem_zero", None, _D, _STREAM, _M, c_uint64, _S),
        _slot("memset", None, _D, _STREAM, _M, c_uint8, c_uint64, _S),
        _slot("memset32", None, _D, _STREAM, _M, c_uint32, c_uint64, _S),
        _slot("host_callback", c_ubyte, _D, _STREAM, Callback, c_void_p),
    ],
)
CreateExecutor = _struct("CreateExecutor", [_EXT, ("executor", POINTER(Executor))])

Platform = _struct(
    "Platform",
    [
        _EXT,
        ("name", c_char_p),
        ("type", c_char_p),
        ("supports_unified_memory", c_ubyte),
        ("use_bfc_allocator", c_ubyte),
        ("force_memory_growth", c_ubyte),
    ],
)
_PLATFORM = POINTER(Platform)
PlatformFns = _struct(
    "PlatformFns",
    [
        _EXT,
        _slot("get_device_count", None, _PLATFORM, POINTER(c_int), _S),
        _slot("create_device", None, _PLATFORM, POINTER(CreateDevice), _S),
        _slot("destroy_device", None, _PLATFORM, POINTER(Device)),
        _slot("create_device_fns", None, _PLATFORM, POINTER(CreateDeviceFns), _S),
        _slot("destroy_device_fns", None, _PLATFORM, POINTER(DeviceFns)),
        _slot("create_stream_executor", None, _PLATFORM, POINTER(CreateExecutor), _S),
        _slot("destroy_stream_executor", None, _PLATFORM, POINTER(Executor)),
        _slot("create_timer_fns", None, _PLATFORM, POINTER(TimerFns), _S),
        _slot("destroy_timer_fns", None, _PLATFORM, POINTER(TimerFns)),
    ],
)
Params = _struct(
    "Params",
    [
        _EXT,
        ("major", c_int32),
        ("minor", c_int32),
        ("patch", c_int32),
        ("platform", _PLATFORM),
        ("fns", POINTER(PlatformFns)),
        _slot("destroy_platform", None, _PLATFORM),
        _slot("destroy_platform_fns", None, POINTER(PlatformFns)),
    ],
)

PLATFORM_BYTES = 35
"""What SP_PLATFORM_STRUCT_SIZE is since TensorFlow 2.9: without the padding at the end."""
