"""The filesystem interface as ctypes sees it, written down a second time on purpose: a test that
took its layouts from the code under test would agree with it whatever it said."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

_F, _P, _S = c_void_p, c_char_p, c_void_p


def _table(name: str, slots: list[tuple[str, Any]]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": slots})


def _slot(name: str, result: Any, *arguments: Any) -> tuple[str, Any]:
    return name, ctypes.CFUNCTYPE(result, *arguments)


class Statistics(ctypes.Structure):
    _fields_ = [("length", c_int64), ("mtime_nsec", c_int64), ("is_directory", ctypes.c_uint8)]


class Handle(ctypes.Structure):
    """TF_Filesystem, the two files and the region: a pointer of the plugin's each."""

    _fields_ = [("pointer", c_void_p)]


_ENTRIES = POINTER(POINTER(c_void_p))

FilesystemOps = _table(
    "FilesystemOps",
    [
        _slot("init", None, _F, _S),
        _slot("cleanup", None, _F),
        _slot("new_random_access_file", None, _F, _P, POINTER(Handle), _S),
        _slot("new_writable_file", None, _F, _P, POINTER(Handle), _S),
        _slot("new_appendable_file", None, _F, _P, POINTER(Handle), _S),
        _slot("new_read_only_memory_region_from_file", None, _F, _P, POINTER(Handle), _S),
        _slot("create_dir", None, _F, _P, _S),
        _slot("recursively_create_dir", None, _F, _P, _S),
        _slot("delete_file", None, _F, _P, _S),
        _slot("delete_dir", None, _F, _P, _S),
        _slot("delete_recursively", None, _F, _P, POINTER(c_uint64), POINTER(c_uint64), _S),
        _slot("rename_file", None, _F, _P, _P, _S),
        _slot("copy_file", None, _F, _P, _P, _S),
        _slot("path_exists", None, _F, _P, _S),
        _slot("paths_exist", c_bool, _F, POINTER(c_char_p), c_int, POINTER(c_void_p)),
        _slot("stat", None, _F, _P, POINTER(Statistics), _S),
        _slot("is_directory", c_bool, _F, _P, _S),
        _slot("get_file_size", c_int64, _F, _P, _S),
        _slot("translate_name", c_void_p, _F, _P),
        _slot("get_children", c_int, _F, _P, _ENTRIES, _S),
        _slot("get_matching_paths", c_int, _F, _P, _ENTRIES, _S),
        _slot("flush_caches", None, _F),
        *[_slot(f"transaction_{number}", c_int, _F) for number in range(6)],
        *[_slot(f"configuration_{number}", None, _F) for number in range(5)],
    ],
)

_H = POINTER(Handle)
RandomAccessFileOps = _table(
    "RandomAccessFileOps",
    [_slot("cleanup", None, _H), _slot("read", c_int64, _H, c_uint64, c_size_t, c_void_p, _S)],
)
WritableFileOps = _table(
    "WritableFileOps",
    [
        _slot("cleanup", None, _H),
        _slot("append", None, _H, c_char_p, c_size_t, _S),
        _slot("tell", c_int64, _H, _S),
        _slot("flush", None, _H, _S),
        _slot("sync", None, _H, _S),
        _slot("close", None, _H, _S),
    ],
)
RegionOps = _table(
    "RegionOps",
    [
        _slot("cleanup", None, _H),
        _slot("data", c_void_p, _H),
        _slot("length", c_uint64, _H),
    ],
)


def _versioned(name: str, table: Any) -> list[tuple[str, Any]]:
    return [
        (f"{name}_abi", c_int),
        (f"{name}_api", c_int),
        (f"{name}_size", c_size_t),
        (name, POINTER(table)),
    ]


class PluginOps(ctypes.Structure):
    _fields_ = [
        ("scheme", c_char_p),
        *_versioned("filesystem", FilesystemOps),
        *_versioned("reader", RandomAccessFileOps),
        *_versioned("writer", WritableFileOps),
        *_versioned("region", RegionOps),
    ]


class PluginInfo(ctypes.Structure):
    _fields_ = [
        ("num_schemes", c_size_t),
        ("ops", POINTER(PluginOps)),
        ("allocate", ctypes.CFUNCTYPE(c_void_p, c_size_t)),
        ("free", ctypes.CFUNCTYPE(None, c_void_p)),
    ]
