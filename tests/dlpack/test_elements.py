"""Names of element types, and the dtypes that hold them."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from modular_tf.abi.dlpack_elements import (
    ELEMENT_TYPES,
    TypeCode,
    by_dtype,
    by_name,
    by_numpy,
)


def test_every_code_has_a_type_that_is_found_by_name_and_by_numbers():
    """And by the dtype of numpy, where it has one."""
    assert {element.code for element in ELEMENT_TYPES} == set(TypeCode)
    for element in ELEMENT_TYPES:
        assert by_name(element.name) is by_dtype(element.dtype) is element
        if element.module:
            dtype = element.to_numpy()
            assert (dtype.name, dtype.itemsize) == (element.name, (element.bits + 7) // 8)
            assert by_numpy(dtype) is element
    with pytest.raises(ValueError, match=r"'float33'.*bfloat16"):
        by_name("float33")


def test_some_have_no_dtype():
    for name in ("complex32", "opaque_handle"):
        with pytest.raises(TypeError, match=name):
            by_name(name).to_numpy()


def test_lanes_and_odd_widths_are_called_by_their_parts():
    assert by_dtype((2, 32, 4)).name == "float32x4"
    assert by_dtype((0, 48, 1)).name == "int48"
    assert by_dtype((0, 24, 2)).name == "int24x2"


@pytest.mark.parametrize("dtype", [">f4", "O", "U3", "datetime64[s]", [("a", "f4")], "V8"])
def test_what_dlpack_cannot_describe(dtype):
    with pytest.raises(ValueError, match="DLPack"):
        by_numpy(np.dtype(dtype))


def test_a_type_that_was_seen_does_not_hide_what_dlpack_cannot_describe():
    for dtype in ("f4", "V8", "M8[s]"):
        native = np.dtype(dtype)
        for given in (native.newbyteorder(), np.dtype((native, 3))):
            with contextlib.suppress(ValueError):
                by_numpy(native)
            with pytest.raises(ValueError, match="DLPack"):
                by_numpy(given)
