"""The data types: numbers, names, sizes, and what stands for one."""

from __future__ import annotations

import pickle
import re

import ml_dtypes
import numpy as np
import pytest

from modular_tf.abi import dlpack_elements
from modular_tf.abi.data_types import (
    CONSTRAINT_NUMBERS,
    DATA_TYPES,
    by_name,
    by_number,
    data_type,
    split_ref,
)
from tests.abi.conftest import INCLUDE

# As TensorFlow 2.21 answers TF_DataTypeSize for the numbers 1 to 23; one byte for those above.
MEASURED_SIZES = [4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8]
ARRAYS = [each for each in DATA_TYPES if each.element is not None and not each.is_quantized]


def test_numbers_and_names_are_those_of_the_header_and_sizes_as_measured():
    header = (INCLUDE / "modular_tf" / "tensor.h").read_text("utf-8")
    enumeration = header.partition("} TF_DataType;")[0]
    declared = {
        int(number): name.lower()
        for name, number in re.findall(r"TF_(\w+) = (\d+)", enumeration)
        if name != "COMPLEX"
    }

    assert declared == {each.number: each.name for each in DATA_TYPES}
    assert [each.size for each in DATA_TYPES] == MEASURED_SIZES + [1] * 10
    # Constraints may name the first 23 types.
    assert (CONSTRAINT_NUMBERS[0], CONSTRAINT_NUMBERS[-1]) == (1, 23)


def test_a_type_is_found_by_what_stands_for_it():
    for each in DATA_TYPES:
        assert by_number(each.number) is each
        assert pickle.loads(pickle.dumps(each)) is each
        for value in (each.number, each.name, f"DT_{each.name.upper()}", each):
            assert data_type(value) is each
    not_plain = [each.name for each in DATA_TYPES if not each.is_plain]
    assert not_plain == ["string", "resource", "variant"], "they are not their bytes"
    assert not_plain == [each.name for each in DATA_TYPES if each.dlpack is None]


def test_arrays_have_one_type_whose_size_their_elements_fill():
    for each in ARRAYS:
        dtype = each.element.to_numpy()
        for value in (dtype, dtype.type, each.element, dtype.name):
            assert data_type(value) is each
        assert dtype.itemsize == each.size
        assert each.dlpack == dlpack_elements.by_name(each.element_name).dtype


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((value, "string") for value in (np.dtype("U3"), np.dtype("O"), np.bytes_, str)),
        (np.dtype("int8"), "int8"),  # arrays of integers are not quantized
        (np.longlong, "int64"),
        (bool, "bool"),
        (ml_dtypes.bfloat16, "bfloat16"),
    ],
)
def test_types_of_arrays_and_names_of_c_types_are_found(value, name):
    assert data_type(value) is by_name(name)
    assert by_name("qint8").dlpack == by_name("int8").dlpack


@pytest.mark.parametrize("value", [int, dict, None, 1.0, True])
def test_what_names_no_type_is_rejected(value):
    with pytest.raises(TypeError, match="names no data type"):
        data_type(value)


@pytest.mark.parametrize(
    ("dtype", "error"),
    [
        ("datetime64[s]", "TensorFlow has no data type"),
        ([("a", "f4")], "TensorFlow has no data type"),
        (">f4", "swap the bytes"),
    ],
)
def test_arrays_that_tensors_cannot_hold_are_rejected(dtype, error):
    with pytest.raises(ValueError, match=error):
        data_type(np.dtype(dtype))


def test_an_unknown_name_is_rejected_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'Float'.*float8_e5m2"):
        by_name("Float")


def test_a_reference_has_the_number_of_its_type_and_a_hundred():
    assert split_ref(101) == (by_name("float"), True)
    assert split_ref(1) == (by_name("float"), False)
    for unknown in (0, 34, 100, 134, -1):
        with pytest.raises(ValueError, match="no type"):
            split_ref(unknown)
