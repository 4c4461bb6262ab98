"""The values of attributes: converted from Python's, compared with what a definition allows."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from modular_tf.abi.data_types import DataType, data_type
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_definition import FunctionName, TensorText
from modular_tf.rules import Violation
from modular_tf.rules.kernel import ATTRIBUTE_ALLOWED, ATTRIBUTES_FIT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from modular_tf.kernel.op_definition import AttrDefinition

__all__ = ["AttrValue", "TensorValue", "attr_key", "check_value", "convert_value", "freeze"]

_INT64 = range(-(2**63), 2**63)


class TensorValue(NamedTuple):
    """A tensor as the value of an attribute."""

    type: DataType
    shape: tuple[int, ...]
    # the elements in row-major order, in the machine's byte order; of strings, each one
    data: bytes | tuple[bytes, ...]


_Scalar: TypeAlias = (
    "int | float | bool | str | DataType | tuple[int, ...] | TensorValue | TensorText"
    " | FunctionName | None"
)
AttrValue: TypeAlias = "_Scalar | tuple[_Scalar, ...]"
"""The value of an attribute in a node, of the Python type that its kind has in definitions.

Strings hold bytes that are not UTF-8 as surrogates. Shapes are tuples with -1 for an unknown size,
None for an unknown rank. Lists are tuples.
"""


def convert_value(op: str, attr: AttrDefinition, value: Any) -> AttrValue:
    """Return a caller's value as nodes have it; messages name `op`.

    It is a Python value of the attribute's kind or its counterpart of numpy; no kind is converted
    to another, but an int to a float. Raises InvalidArgumentError for another kind (rule KN-041).
    """
    try:
        if attr.is_list:
            return tuple(map(_CONVERSIONS[attr.kind], _elements(value)))
        converted: AttrValue = _CONVERSIONS[attr.kind](value)
    except (TypeError, ValueError, OverflowError) as error:
        text = f"{op}: attribute {attr.name!r} expects {attr.type_text}, got {_shown(value)}"
        why = f": {error}" if str(error) else ""
        raise Violation(ATTRIBUTES_FIT, text + why).error(
            InvalidArgumentError, operation=op
        ) from None
    return converted


def check_value(op: str, attr: AttrDefinition, value: AttrValue) -> None:
    """Raise InvalidArgumentError if a definition does not allow a value of its kind.

    It is not in the allowed set, or below the minimum (rule KN-045).
    """
    if attr.minimum is not None:
        _check_minimum(op, attr, value)
    if attr.allowed is not None:
        for each in value if attr.is_list else (value,):  # type: ignore[union-attr]
            if each not in attr.allowed:
                allowed = ", ".join(_named(one) for one in attr.allowed)
                text = f"attribute {attr.name!r} is {_named(each)}, which is not one of {allowed}"
                raise _not_allowed(op, text)


def _check_minimum(op: str, attr: AttrDefinition, value: Any) -> None:
    found = len(value) if attr.is_list else value
    if attr.minimum is not None and found < attr.minimum:
        what = f"has {found} elements" if attr.is_list else f"is {found}"
        raise _not_allowed(op, f"attribute {attr.name!r} {what}; the minimum is {attr.minimum}")


def _not_allowed(op: str, text: str) -> InvalidArgumentError:
    return Violation(ATTRIBUTE_ALLOWED, f"{op}: {text}").error(InvalidArgumentError, operation=op)


_HASHED_BY_VALUE = frozenset((bool, int, str, bytes, type, type(None), DataType))


def attr_key(attrs: Mapping[str, Any]) -> Hashable | None:
    """Return what tells a caller's attributes apart, quickly; None where that would take a copy.

    Equal keys mean equal nodes: values that Python takes for equal and that are none, such as 1 and
    True, or 0.0 and -0.0, have different keys. The order of the attributes counts.
    """
    if not attrs:
        return ()
    key: list[Any] = []
    for name, value in attrs.items():
        kind = type(value)
        if kind in _HASHED_BY_VALUE:
            key += (name, kind, value)
        else:
            part = _value_key(value)
            if part is None:
                return None
            key += (name, kind, part)
    return tuple(key)


def _value_key(value: Any) -> Hashable | None:
    kind = type(value)
    if kind is float:
        return (kind, value.hex())
    if kind in _HASHED_BY_VALUE:
        return (kind, value)
    return _list_key(value) if kind is list or kind is tuple else None


def _list_key(values: Any) -> Hashable | None:
    kinds = tuple(map(type, values))
    if _HASHED_BY_VALUE.issuperset(kinds):
        return kinds, tuple(values)
    parts = tuple(map(_value_key, values))
    return None if None in parts else (kinds, parts)


def freeze(value: AttrValue) -> Hashable:
    """Return what tells a converted value from all others of its attribute."""
    if isinstance(value, float):
        return value.hex()
    if type(value) is tuple:
        return tuple([each.hex() if isinstance(each, float) else each for each in value])
    return value


# -- conversions: each raises TypeError or ValueError for what is of another kind ------------------


def _elements(value: Any) -> Any:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError("a list is needed")
    return value


def _unwrapped(value: Any) -> Any:
    """Return the Python value of a scalar of numpy, all else as it is."""
    is_scalar = hasattr(value, "item") and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value


def _to_bool(value: Any) -> bool:
    value = _unwrapped(value)
    if not isinstance(value, bool):
        raise TypeError
    return value


def _to_int(value: Any) -> int:
    value = _unwrapped(value)
    if isinstance(value, bool):
        raise TypeError
    number = operator.index(value)
    if number not in _INT64:
        raise ValueError("it has more than 64 bits")
    return number


def _to_float(value: Any) -> float:
    value = _unwrapped(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _to_string(value: Any) -> str:
    value = _unwrapped(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _to_type(value: Any) -> DataType:
    return data_type(value)


def _to_shape(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    sizes = tuple(-1 if size is None else _to_int(size) for size in _elements(value))
    if any(size < -1 for size in sizes):
        raise ValueError("a size is below -1")
    return sizes


def _to_tensor(value: Any) -> TensorValue | TensorText:
    if isinstance(value, (TensorValue, TensorText)):
        return value
    if not hasattr(value, "dtype"):
        raise TypeError("an array is needed, whose dtype says what it is")
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

    array = np.asarray(value)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    kind = data_type(array.dtype)
    if kind.is_plain:
        return TensorValue(kind, array.shape, array.tobytes())
    strings = [each.encode() if isinstance(each, str) else bytes(each) for each in array.flat]
    return TensorValue(kind, array.shape, tuple(strings))


def _to_function(value: Any) -> FunctionName:
    if isinstance(value, FunctionName):
        return value
    return FunctionName(_to_string(value))


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "bool": _to_bool,
    "int": _to_int,
    "float": _to_float,
    "string": _to_string,
    "type": _to_type,
    "shape": _to_shape,
    "tensor": _to_tensor,
    "func": _to_function,
}


def _shown(value: Any) -> str:
    text = repr(value)
    short = text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004  (fits on a line)
    return f"{short} ({type(value).__name__})"


def _named(value: Any) -> str:
    return value.name if isinstance(value, DataType) else repr(value)
