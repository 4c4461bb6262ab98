"""The structs are those of the published interface: in C, and as the tests write them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from modular_tf.abi.dlpack_layouts import DLPACK_STRUCTS, StructLayout
from tests.dlpack import foreign
from tests.fixtures.compiler import compile_object

HEADER = Path(__file__).parents[2] / "modular_tf" / "native" / "dlpack" / "dlpack_abi.h"


def assertions(layout: StructLayout) -> list[str]:
    offsets = [f"offsetof({layout.name}, {field}) == {at}" for field, at in layout.offsets.items()]
    return [
        f"sizeof({layout.name}) == {layout.size}",
        f"_Alignof({layout.name}) == {layout.alignment}",
        *offsets,
    ]


def test_the_header_has_the_numbers_of_the_sheet(tmp_path):
    source = tmp_path / "dlpack_layouts.c"
    (tmp_path / HEADER.name).write_text(HEADER.read_text(encoding="utf-8"), encoding="utf-8")
    conditions = [condition for layout in DLPACK_STRUCTS for condition in assertions(layout)]
    lines = [f'_Static_assert({condition}, "{condition}");' for condition in conditions]
    source.write_text("\n".join([f'#include "{HEADER.name}"', "#include <stddef.h>", *lines, ""]))

    assert len(conditions) > 40
    assert compile_object(source).is_file()


@pytest.mark.parametrize(
    ("name", "struct"),
    [
        ("DLTensor", foreign.Tensor),
        ("DLManagedTensor", foreign.Legacy),
        ("DLManagedTensorVersioned", foreign.Versioned),
        ("DLPackExchangeAPI", foreign.ExchangeTable),
    ],
)
def test_the_tests_use_the_same_numbers(name, struct):
    layout = next(layout for layout in DLPACK_STRUCTS if layout.name == name)
    shared = {field for field, *_ in struct._fields_} & set(layout.offsets)

    assert ctypes.sizeof(struct) == layout.size
    assert {field: getattr(struct, field).offset for field in shared} == {
        field: layout.offsets[field] for field in shared
    }
