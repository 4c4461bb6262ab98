"""The C headers and the Python layouts describe the same bytes."""

from __future__ import annotations

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.abi.layouts import Dialect
from tests.abi.conftest import INCLUDE
from tests.abi.kernel_layouts import ALL_LAYOUTS

HEADERS = sorted(path.name for path in (INCLUDE / "modular_tf").glob("*.h"))
DECLARED = {None, Dialect.FILESYSTEM_V221, Dialect.FILESYSTEM_V222, Dialect.DEVICE_V209}
SUFFIX = {Dialect.FILESYSTEM_V221: "_V221", Dialect.FILESYSTEM_V222: "_V222"}
ODD_SIZE_MACROS = {
    "SP_AllocatorStats": "SP_ALLOCATORSTATS_STRUCT_SIZE",
    "SP_StreamExecutor": "SP_STREAMEXECUTOR_STRUCT_SIZE",
}
EVERYTHING = "modular_tf.h"
OF_RFC = "device_rfc.h"
"""Gives other structs the names that they have in device.h, so it is compiled alone."""
KEYWORD = {"c": "_Static_assert", "c++": "static_assert"}

each_unit = pytest.mark.parametrize("header", [EVERYTHING, OF_RFC])


def including(*headers):
    return "".join(f'#include "modular_tf/{header}"\n' for header in headers)


def declared_layouts(header=EVERYTHING):
    """Return the layouts that a header declares; the others are read, never written."""
    if header == OF_RFC:
        return [layout for layout in ALL_LAYOUTS.values() if _is_of_rfc(layout)]
    return [layout for layout in ALL_LAYOUTS.values() if layout.dialect in DECLARED]


def _is_of_rfc(layout):
    if layout.name in {"SP_DeviceFns", "SE_CreateDeviceFnsParams"}:
        return False
    shared = layout.dialect is None and layout.name.startswith(("SP_", "SE_"))
    return shared or layout.dialect is Dialect.DEVICE_RFC


def c_name(layout):
    return layout.name + SUFFIX.get(layout.dialect, "")


def size_macro(name):
    """Return the macro of a struct's size: SP_TimerFns has SP_TIMER_FNS_STRUCT_SIZE."""
    prefix, _, rest = name.partition("_")
    words = "".join(f"_{letter}" if letter.isupper() else letter for letter in rest)
    return ODD_SIZE_MACROS.get(name, f"{prefix}{words.upper()}_STRUCT_SIZE")


def assertions(layout):
    """Yield one C condition per number of a layout."""
    name = c_name(layout)
    yield f"sizeof({name}) == {layout.size}"
    for field in layout.fields:
        yield f"offsetof({name}, {field.name}) == {field.offset}"
        yield f"sizeof((({name}*)0)->{field.name}) == {field.size}"
    if layout.struct_size is not None:
        yield f"{size_macro(layout.name)} == {layout.struct_size}"


def unit(layouts, language, header=EVERYTHING):
    checks = [condition for layout in layouts for condition in assertions(layout)]
    lines = [f'{KEYWORD[language]}({check}, "{check}");' for check in checks]
    return including(header) + "\n".join(lines)


@each_unit
def test_sizes_and_offsets(compile_object, language, header):
    compile_object(unit(declared_layouts(header), language, header), language, "-fsyntax-only")


@pytest.mark.parametrize("order", [("device.h", OF_RFC), (OF_RFC, EVERYTHING)])
def test_the_two_device_headers_refuse_each_other(compile_object, language, order):
    with pytest.raises(AssertionError, match="a translation unit includes one of the two"):
        compile_object(including(*order), language)


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_stands_alone(compile_object, language, header):
    compile_object(including(header), language, "-fsyntax-only")


def test_filesystem_ops_is_the_264_byte_layout_unless_asked(compile_object, language):
    assertion = f'{KEYWORD[language]}(TF_FILESYSTEM_OPS_SIZE == EXPECTED, "size");'
    source = including("filesystem.h") + assertion

    compile_object(source, language, "-DEXPECTED=264")
    compile_object(source, language, "-DEXPECTED=216", "-DMODULAR_TF_FILESYSTEM_V222")


def members(object_file):
    """Return each struct's field names and offsets, from the debug information."""
    with object_file.open("rb") as stream:
        unit_info = next(ELFFile(stream).get_dwarf_info().iter_CUs())
        structs = {}
        for typedef in unit_info.iter_DIEs():
            if typedef.tag != "DW_TAG_typedef" or "DW_AT_type" not in typedef.attributes:
                continue
            target = typedef.get_DIE_from_attribute("DW_AT_type")
            if target.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
                structs[_attribute(typedef, "DW_AT_name").decode()] = [
                    (
                        _attribute(child, "DW_AT_name").decode(),
                        _attribute(child, "DW_AT_data_member_location") or 0,
                    )
                    for child in target.iter_children()
                    if child.tag == "DW_TAG_member"
                ]
        return structs


def _attribute(entry, name):
    return entry.attributes[name].value if name in entry.attributes else None


@each_unit
def test_headers_declare_no_field_and_no_struct_that_the_layouts_lack(
    compile_object, language, header
):
    """A field that hides in padding changes neither a size nor another field's offset."""
    options = ("-gdwarf-4", "-fno-eliminate-unused-debug-types")
    found = members(compile_object(including(header) + "int unit;", language, *options))
    declared = declared_layouts(header)
    expected = {
        c_name(layout): [(f.name, f.offset) for f in layout.fields if "." not in f.name]
        for layout in declared
    }
    assert expected == {name: found[name] for name in expected}

    if language == "c":
        ours = ("TF_", "SP_", "SE_")
        filled = {name for name, fields in found.items() if fields and name.startswith(ours)}
        assert {c_name(layout) for layout in declared} | {"TF_FilesystemOps"} >= filled
        assert len(filled) >= len(declared)
