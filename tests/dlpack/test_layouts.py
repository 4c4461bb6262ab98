"""The structs are those of the published interface."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from modular_tf.abi.dlpack_devices import DLPACK_VERSION, DeviceType
from modular_tf.abi.dlpack_elements import TypeCode
from tests.dlpack.struct_layouts import DLPACK_STRUCTS
from tests.fixtures.compiler import compile_object

OURS = '#include "modular_tf/dlpack.h"\n'
PUBLISHED = "#include <dlpack/dlpack.h>\n"
AFTER_1_3 = {DeviceType.TPU, DeviceType.TPU_HOST, DeviceType.ASCEND}
ORDERS = {
    "ours": OURS,
    "published": PUBLISHED,
    "ours first": OURS + PUBLISHED,
    "ours last": PUBLISHED + OURS,
}
SLOTS = {
    "DLPackManagedTensorAllocator": "managed_tensor_allocator",
    "DLPackManagedTensorFromPyObjectNoSync": "managed_tensor_from_py_object_no_sync",
    "DLPackManagedTensorToPyObjectNoSync": "managed_tensor_to_py_object_no_sync",
    "DLPackDLTensorFromPyObjectNoSync": "dltensor_from_py_object_no_sync",
    "DLPackCurrentWorkStream": "current_work_stream",
}


def assertions(name, size, alignment, offsets):
    return [
        f"sizeof({name}) == {size}",
        f"ALIGNMENT({name}) == {alignment}",
        *(f"offsetof({name}, {field}) == {at}" for field, at in offsets.items()),
    ]


def numbers():
    """Return what the header's constants are, by the numbers of the sheet."""
    codes = {
        **{code: code.name.lower() for code in TypeCode},
        TypeCode.INT: "Int", TypeCode.UINT: "UInt", TypeCode.OPAQUE_HANDLE: "OpaqueHandle",
    }  # fmt: skip
    names = {code: f"kDL{name[0].upper()}{name[1:]}" for code, name in codes.items()}
    return [
        f"DLPACK_MAJOR_VERSION == {DLPACK_VERSION[0]}",
        f"DLPACK_MINOR_VERSION == {DLPACK_VERSION[1]}",
        "DLPACK_FLAG_BITMASK_READ_ONLY == 1",
        "DLPACK_FLAG_BITMASK_IS_COPIED == 2",
        "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED == 4",
        *(f"{name} == {code.value}" for code, name in names.items()),
        *(f"{device_name(kind)} == {kind.value}" for kind in DeviceType if kind not in AFTER_1_3),
    ]


def device_name(kind):
    """Return what C calls a type: CUDA_HOST is kDLCUDAHost, EXT_DEV is kDLExtDev."""
    kept = {"CPU", "CUDA", "VPI", "ROCM", "MAIA"}
    special = {
        DeviceType.OPENCL: "OpenCL",
        DeviceType.ONE_API: "OneAPI",
        DeviceType.WEB_GPU: "WebGPU",
    }
    words = [word if word in kept else word.capitalize() for word in kind.name.split("_")]
    return "kDL" + special.get(kind, "".join(words))


CONDITIONS = [
    *(each for name, layout in DLPACK_STRUCTS.items() for each in assertions(name, *layout)),
    *numbers(),
]


@pytest.mark.parametrize("language", ["c", "cc"])
@pytest.mark.parametrize("order", ORDERS)
def test_the_header_has_the_numbers_of_the_sheet(tmp_path, language, order):
    """With the published header too, which may come first, and which has the same numbers.

    It is what tvm-ffi brings.
    """
    source = tmp_path / f"dlpack_layouts.{language}"
    keyword, alignment = (
        ("_Static_assert", "_Alignof") if language == "c" else ("static_assert", "alignof")
    )
    lines = [f'{keyword}({condition}, "{condition}");' for condition in CONDITIONS]
    slots = [
        f"static inline {function} type_of_{slot}(DLPackExchangeAPI* api) {{ return api->{slot}; }}"
        for function, slot in SLOTS.items()
    ]
    head = [ORDERS[order], "#include <stddef.h>", f"#define ALIGNMENT {alignment}"]
    source.write_text("\n".join([*head, *lines, *slots, ""]))

    assert len(CONDITIONS) > 80
    tvm_ffi = find_spec("tvm_ffi")
    published = Path(tvm_ffi.origin).parent / "include"
    assert compile_object(source, header_folders=[published]).is_file()
