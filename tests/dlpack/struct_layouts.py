"""Sizes, alignments and offsets of the structs of DLPack 1.3, in bytes, on LP64 (dlpack §1.1)."""

from __future__ import annotations

DLPACK_STRUCTS = {
    "DLPackVersion": (8, 4, {"major": 0, "minor": 4}),
    "DLDevice": (8, 4, {"device_type": 0, "device_id": 4}),
    "DLDataType": (4, 2, {"code": 0, "bits": 1, "lanes": 2}),
    "DLTensor": (
        48,
        8,
        {
            "data": 0,
            "device": 8,
            "ndim": 16,
            "dtype": 20,
            "shape": 24,
            "strides": 32,
            "byte_offset": 40,
        },
    ),
    "DLManagedTensor": (64, 8, {"dl_tensor": 0, "manager_ctx": 48, "deleter": 56}),
    "DLManagedTensorVersioned": (
        80,
        8,
        {"version": 0, "manager_ctx": 8, "deleter": 16, "flags": 24, "dl_tensor": 32},
    ),
    "DLPackExchangeAPIHeader": (16, 8, {"version": 0, "prev_api": 8}),
    "DLPackExchangeAPI": (
        56,
        8,
        {
            "header": 0,
            "managed_tensor_allocator": 16,
            "managed_tensor_from_py_object_no_sync": 24,
            "managed_tensor_to_py_object_no_sync": 32,
            "dltensor_from_py_object_no_sync": 40,
            "current_work_stream": 48,
        },
    ),
}
