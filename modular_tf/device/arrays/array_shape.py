"""Shapes and element types of arrays: how many elements, how many bytes, and which names."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from modular_tf.abi.dlpack_elements import ElementType, by_dtype, by_name, by_numpy
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.tensor import bytes_of_elements

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_DIMENSIONS = 64  # numpy's limit too


def checked_shape(shape: Sequence[int] | int) -> tuple[int, ...]:
    """Return a shape as a tuple; a number is one dimension.

    Raises InvalidArgumentError if a size is no whole number, or negative, or there are more than
    64.
    """
    try:
        sizes = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise InvalidArgumentError(
            f"shape: expected a whole number, or a sequence of them, found {shape!r}"
        ) from None
    if any(size < 0 for size in sizes) or len(sizes) > _MOST_DIMENSIONS:
        raise InvalidArgumentError(
            f"shape {sizes}: expected at most {_MOST_DIMENSIONS} sizes, none below 0"
        )
    return sizes


def n_bytes_of(shape: tuple[int, ...], dtype: tuple[int, int, int], *, is_padded: bool) -> int:
    """Return the size of a compact array, whose shape is of `checked_shape`.

    The dtype is code, bits and lanes. Padded elements of less than 8 bits have bytes of their own;
    else they are packed. Raises InvalidArgumentError if no memory is so large, or there are no such
    elements.
    """
    try:
        return bytes_of_elements(shape, dtype, is_padded)
    except ValueError as error:
        raise InvalidArgumentError(f"shape {shape}, elements {dtype}: {error}") from None


def element_type_of(dtype: Any) -> ElementType:
    """Return the element type with a name, or of a dtype of numpy.

    Raises InvalidArgumentError if there is none.
    """
    try:
        if isinstance(dtype, ElementType):
            return dtype
        if isinstance(dtype, str):
            return by_name(dtype)
        if isinstance(dtype, tuple):
            return by_dtype(dtype)
        return by_numpy(import_module("numpy").dtype(dtype))
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"dtype {dtype!r} of a device array: {error}") from None
