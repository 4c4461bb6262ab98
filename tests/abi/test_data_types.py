"""The data types: numbers, names, sizes, and what stands for one."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import modular_tf
from modular_tf.abi import dlpack_elements
from modular_tf.abi.data_types import (
    CONSTRAINT_NUMBERS,
    DATA_TYPES,
    by_name,
    by_number,
    data_type,
    split_ref,
)

HEADER = Path(modular_tf.__file__).parent / "include" / "modular_tf" / "tensor.h"
# As TensorFlow 2.21 answers TF_DataTypeSize for the numbers 1 to 23; one byte for those above.
MEASURED_SIZES = [4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8]
ARRAYS = [each for each in DATA_TYPES if each.element is not None and not each.is_quantized]


def test_numbers_and_names_are_those_of_the_header():
    enumeration = HEADER.read_text("utf-8").partition("} TF_DataType;")[0]
    declared = {
        int(number): name.lower()
        for name, number in re.findall(r"TF_(\w+) = (\d+)", enumeration)
        if name != "COMPLEX"
    }

    assert declared == {each.number: each.name for each in DATA_TYPES}


def test_sizes_are_as_measured():
    assert [each.size for each in DATA_TYPES] == MEASURED_SIZES + [1] * 10


def test_only_elements_that_are_their_bytes_are_plain():
    not_plain = [each.name for each in DATA_TYPES if not each.is_plain]

    assert not_plain == ["string", "resource", "variant"]
    assert not_plain == [each.name for each in DATA_TYPES if each.dlpack is None]


@pytest.mark.parametrize("each", ARRAYS, ids=str)
def test_elements_of_arrays_fill_the_size(each):
    assert each.element.to_numpy().itemsize == each.size
    assert each.dlpack == dlpack_elements.by_name(each.element_name).dtype


@pytest.mark.parametrize("each", DATA_TYPES, ids=str)
def test_a_type_is_found_by_what_stands_for_it(each):
    assert by_number(each.number) is each
    assert data_type(each.number) is each
    assert data_type(each.name) is each
    assert data_type(f"DT_{each.name.upper()}") is each
    assert data_type(each) is each
    assert pickle.loads(pickle.dumps(each)) is each


@pytest.mark.parametrize("each", ARRAYS, ids=str)
def test_arrays_have_one_type(each):
    dtype = each.element.to_numpy()

    assert data_type(dtype) is each
    assert data_type(dtype.type) is each
    assert data_type(each.element) is each
    assert data_type(dtype.name) is each


def test_arrays_of_integers_are_not_quantized():
    assert data_type(np.dtype("int8")) is by_name("int8")
    assert by_name("qint8").dlpack == by_name("int8").dlpack


@pytest.mark.parametrize("value", ["U3", "S2", "O", np.str_, np.bytes_, np.object_, str, bytes])
def test_text_and_objects_are_strings(value):
    given = np.dtype(value) if isinstance(value, str) else value

    assert data_type(given) is by_name("string")


def test_names_of_c_types_are_found_by_their_width():
    assert data_type(np.longlong) is by_name("int64")
    assert data_type(bool) is by_name("bool")
    assert data_type(ml_dtypes.bfloat16) is by_name("bfloat16")


@pytest.mark.parametrize("value", [int, float, complex, dict, None, 1.0, True, object()])
def test_what_names_no_type_is_rejected(value):
    with pytest.raises(TypeError, match="names no data type"):
        data_type(value)


@pytest.mark.parametrize("dtype", ["datetime64[s]", [("a", "f4")], "V8"])
def test_arrays_that_tensors_cannot_hold_are_rejected(dtype):
    with pytest.raises(ValueError, match="TensorFlow has no data type"):
        data_type(np.dtype(dtype))


def test_swapped_bytes_are_rejected():
    with pytest.raises(ValueError, match="swap the bytes"):
        data_type(np.dtype(">f4"))


@pytest.mark.parametrize("number", [0, 34, 100, 134, -1])
def test_unknown_numbers_are_rejected(number):
    with pytest.raises(ValueError, match="no type"):
        split_ref(number)


def test_a_reference_has_the_number_of_its_type_and_a_hundred():
    assert split_ref(101) == (by_name("float"), True)
    assert split_ref(1) == (by_name("float"), False)


def test_an_unknown_name_is_rejected_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'Float'.*float8_e5m2"):
        by_name("Float")


def test_constraints_may_name_the_first_23_types():
    assert (CONSTRAINT_NUMBERS[0], CONSTRAINT_NUMBERS[-1]) == (1, 23)
