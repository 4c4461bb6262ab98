"""The C headers and the Python layouts describe the same bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile

import modular_tf
from modular_tf.abi.layouts import Dialect, Kind, Layout
from tests.abi.kernel_layouts import ALL_LAYOUTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INCLUDE = Path(modular_tf.__file__).parent / "include" / "modular_tf"
HEADERS = sorted(path.name for path in INCLUDE.glob("*.h"))
DECLARED = {None, Dialect.FILESYSTEM_V221, Dialect.FILESYSTEM_V222, Dialect.DEVICE_V209}
SUFFIX = {Dialect.FILESYSTEM_V221: "_V221", Dialect.FILESYSTEM_V222: "_V222"}
SIZE_MACROS = {
    "SP_TimerFns": "SP_TIMER_FNS_STRUCT_SIZE",
    "SP_AllocatorStats": "SP_ALLOCATORSTATS_STRUCT_SIZE",
    "SP_DeviceMemoryBase": "SP_DEVICE_MEMORY_BASE_STRUCT_SIZE",
    "SP_Device": "SP_DEVICE_STRUCT_SIZE",
    "SE_CreateDeviceParams": "SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE",
    "SP_DeviceFns": "SP_DEVICE_FNS_STRUCT_SIZE",
    "SE_CreateDeviceFnsParams": "SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE",
    "SP_StreamExecutor": "SP_STREAMEXECUTOR_STRUCT_SIZE",
    "SE_CreateStreamExecutorParams": "SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE",
    "SP_Platform": "SP_PLATFORM_STRUCT_SIZE",
    "SP_PlatformFns": "SP_PLATFORM_FNS_STRUCT_SIZE",
    "SE_PlatformRegistrationParams": "SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE",
    "SP_Allocator": "SP_ALLOCATOR_STRUCT_SIZE",
    "SP_AllocatorFns": "SP_ALLOCATOR_FNS_STRUCT_SIZE",
    "SP_CustomAllocator": "SP_CUSTOM_ALLOCATOR_STRUCT_SIZE",
    "SP_CustomAllocatorFns": "SP_CUSTOM_ALLOCATOR_FNS_STRUCT_SIZE",
    "SE_CreateAllocatorParams": "SE_CREATE_ALLOCATOR_PARAMS_STRUCT_SIZE",
    "TF_AllocatorAttributes": "TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE",
    "SE_CreateCustomAllocatorParams": "SE_CREATE_CUSTOM_ALLOCATOR_PARAMS_STRUCT_SIZE",
}
EVERYTHING = "modular_tf.h"
OF_RFC = "device_rfc.h"
"""Gives other structs the names that they have in device.h, so it is compiled alone."""


def declared_layouts(header: str = EVERYTHING) -> list[Layout]:
    """Return the layouts that a header declares; the others are read, never written."""
    if header == OF_RFC:
        return [layout for layout in ALL_LAYOUTS.values() if _is_of_rfc(layout)]
    return [layout for layout in ALL_LAYOUTS.values() if layout.dialect in DECLARED]


def _is_of_rfc(layout: Layout) -> bool:
    if layout.name in {"SP_DeviceFns", "SE_CreateDeviceFnsParams"}:
        return False
    shared = layout.dialect is None and layout.name.startswith(("SP_", "SE_"))
    return shared or layout.dialect is Dialect.DEVICE_RFC


def c_name(layout: Layout) -> str:
    """Return the header's name of a struct."""
    return layout.name + SUFFIX.get(layout.dialect, "")


def assertions(layout: Layout) -> Iterator[str]:
    """Yield one C condition per number of a layout."""
    name = c_name(layout)
    yield f"sizeof({name}) == {layout.size}"
    for field in layout.fields:
        yield f"offsetof({name}, {field.name}) == {field.offset}"
        yield f"sizeof((({name}*)0)->{field.name}) == {field.size}"
    if layout.struct_size is not None:
        yield f"{SIZE_MACROS[layout.name]} == {layout.struct_size}"


def unit(layouts: list[Layout], language: str, header: str = EVERYTHING) -> str:
    keyword = {"c": "_Static_assert", "c++": "static_assert"}[language]
    checks = [condition for layout in layouts for condition in assertions(layout)]
    lines = [f'{keyword}({check}, "{check}");' for check in checks]
    return f'#include "modular_tf/{header}"\n' + "\n".join(lines) + "\nextern int unit;\n"


@pytest.mark.parametrize("header", [EVERYTHING, OF_RFC])
def test_sizes_and_offsets(compile_object: Callable[..., Path], language: str, header: str) -> None:
    compile_object(unit(declared_layouts(header), language, header), language)


@pytest.mark.parametrize("order", [("device.h", OF_RFC), (OF_RFC, EVERYTHING)])
def test_the_two_device_headers_refuse_each_other(
    compile_object: Callable[..., Path], language: str, order: tuple[str, str]
) -> None:
    source = "".join(f'#include "modular_tf/{header}"\n' for header in order)

    with pytest.raises(AssertionError, match="a translation unit includes one of the two"):
        compile_object(source, language)


def test_a_wrong_number_does_not_compile(
    compile_object: Callable[..., Path], language: str
) -> None:
    source = unit(declared_layouts(), language).replace("== 264", "== 272")

    with pytest.raises(AssertionError, match=r"sizeof\(TF_FilesystemOps_V221\) == 272"):
        compile_object(source, language)


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_stands_alone(
    compile_object: Callable[..., Path], language: str, header: str
) -> None:
    compile_object(f'#include "modular_tf/{header}"\nextern int unit;\n', language)


def test_filesystem_ops_is_the_264_byte_layout_unless_asked(
    compile_object: Callable[..., Path], language: str
) -> None:
    keyword = {"c": "_Static_assert", "c++": "static_assert"}[language]
    source = (
        '#include "modular_tf/filesystem.h"\n'
        f'{keyword}(TF_FILESYSTEM_OPS_SIZE == EXPECTED, "size");\nextern int unit;\n'
    )

    compile_object(source, language, "-DEXPECTED=264")
    compile_object(source, language, "-DEXPECTED=216", "-DMODULAR_TF_FILESYSTEM_V222")


def members(object_file: Path) -> dict[str, list[tuple[str, int]]]:
    """Return each struct's field names and offsets, from the debug information."""
    with object_file.open("rb") as stream:
        unit_info = next(ELFFile(stream).get_dwarf_info().iter_CUs())
        structs = {}
        for typedef in unit_info.iter_DIEs():
            if typedef.tag != "DW_TAG_typedef" or "DW_AT_type" not in typedef.attributes:
                continue
            target = typedef.get_DIE_from_attribute("DW_AT_type")
            if target.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
                structs[typedef.attributes["DW_AT_name"].value.decode()] = [
                    (
                        child.attributes["DW_AT_name"].value.decode(),
                        child.attributes["DW_AT_data_member_location"].value
                        if "DW_AT_data_member_location" in child.attributes
                        else 0,
                    )
                    for child in target.iter_children()
                    if child.tag == "DW_TAG_member"
                ]
        return structs


@pytest.mark.parametrize("header", [EVERYTHING, OF_RFC])
def test_headers_declare_no_field_that_the_layouts_lack(
    compile_object: Callable[..., Path], language: str, header: str
) -> None:
    """A field that hides in padding changes neither a size nor another field's offset."""
    source = f'#include "modular_tf/{header}"\nextern int unit;\nint unit;\n'
    found = members(
        compile_object(source, language, "-gdwarf-4", "-fno-eliminate-unused-debug-types")
    )
    expected = {
        c_name(layout): [(f.name, f.offset) for f in layout.fields if "." not in f.name]
        for layout in declared_layouts(header)
    }

    assert expected == {name: found[name] for name in expected}


@pytest.mark.parametrize("header", [EVERYTHING, OF_RFC])
def test_headers_declare_no_struct_that_the_layouts_lack(
    compile_object: Callable[..., Path], header: str
) -> None:
    source = f'#include "modular_tf/{header}"\nextern int unit;\nint unit;\n'
    found = members(compile_object(source, "c", "-gdwarf-4", "-fno-eliminate-unused-debug-types"))
    filled = {
        name for name, fields in found.items() if fields and name.startswith(("TF_", "SP_", "SE_"))
    }

    declared = declared_layouts(header)
    assert {c_name(layout) for layout in declared} | {"TF_FilesystemOps"} >= filled
    assert len(filled) >= len(declared)


def test_slots_are_pointers_without_gaps() -> None:
    for layout in ALL_LAYOUTS.values():
        slots = layout.slots
        assert all(slot.size == 8 and slot.kind is Kind.FUNCTION for slot in slots)
        assert all(b.offset == a.end for a, b in pairwise(slots)), layout.name
