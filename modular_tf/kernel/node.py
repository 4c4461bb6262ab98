"""One call of an operation as kernels see it: types of all tensors, values of all attributes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from modular_tf.abi.data_types import DataType, data_type
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_definition import FunctionName, TensorText
from modular_tf.rules import Rule, Violation
from modular_tf.rules.kernel import ATTRIBUTE_ALLOWED, ATTRIBUTES_FIT, INPUT_TYPES_AGREE, INPUTS_FIT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition

__all__ = [
    "AttrValue",
    "InputType",
    "Node",
    "TensorValue",
    "attr_key",
    "build_node",
    "check_value",
    "convert_value",
    "freeze",
]

InputType: TypeAlias = "DataType | Sequence[DataType]"
"""The type of an input; of one that takes several tensors, the type of each."""


@dataclass(frozen=True, eq=False)
class Node:
    """A call without its tensors. Two are equal if one kernel object can serve both.

    Its hash is computed once.
    """

    op: str
    attrs: Mapping[str, AttrValue]  # the value of each attribute of the definition, in its order
    input_types: tuple[DataType, ...]  # of all tensors that go in
    # which of them each argument has, by the name of the argument
    input_ranges: Mapping[str, range]
    output_types: tuple[DataType, ...]  # of all tensors that come out
    output_ranges: Mapping[str, range]
    label: str = ""  # which kernels the call wants; "" for ordinary ones
    # different for each two nodes that differ; in a dictionary the node itself is found faster
    key: Hashable = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        attrs = tuple([(name, freeze(value)) for name, value in self.attrs.items()])
        key = self.op, self.label, self.input_types, attrs
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "_hash", hash(key))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Node) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash


def build_node(
    definition: OpDefinition,
    input_types: Sequence[InputType],
    attrs: Mapping[str, Any] | None = None,
    *,
    label: str = "",
) -> Node:
    """Return the node of a call: attributes converted, inferred and defaulted, types of outputs.

    Inputs decide on the attributes that they give, also where the caller gives another value, as in
    TensorFlow. No type is converted to another. Inputs are in the order of the definition;
    attributes that inputs give or a default has may be left out.

    Raises:
        InvalidArgumentError: An attribute is unknown, missing or of another kind (KN-041), an input
            is missing, too many, or no list where one is needed (KN-043), types contradict
            (KN-044), or a value is not allowed (KN-045).
    """
    given = _converted(definition, attrs or {})
    bound = _bound(definition, input_types)
    values = _completed(definition, {**given, **bound.attrs})
    output_types, output_ranges = _outputs(definition, values)
    return Node(
        definition.name,
        MappingProxyType(values),
        tuple(bound.types),
        bound.ranges,
        output_types,
        output_ranges,
        label,
    )


def _converted(definition: OpDefinition, attrs: Mapping[str, Any]) -> dict[str, AttrValue]:
    known = definition.attrs_by_name
    for name in attrs:
        if name not in known:
            have = ", ".join(known) or "none"
            text = f"attribute {name!r} does not exist; {definition.name} has {have}"
            raise _refused(definition, ATTRIBUTES_FIT, text)
    return {
        name: convert_value(definition.name, known[name], value)
        for name, value in attrs.items()
        if not (value is None and known[name].may_be_absent)
    }


class _Bound:
    """Inputs bound to arguments one after the other, and what they say of attributes."""

    def __init__(self, definition: OpDefinition) -> None:
        self._definition = definition
        self.types: list[DataType] = []
        self.ranges: dict[str, range] = {}
        self.attrs: dict[str, AttrValue] = {}
        self._giver: dict[str, str] = {}  # the argument that an attribute was inferred from

    def bind(self, arg: ArgDefinition, given: InputType) -> None:
        """Bind the next input."""
        kinds = self._tensors(arg, given)
        if arg.number_attr is not None:
            self._infer_number(arg, arg.number_attr, len(kinds))
        start = len(self.types)
        for position, kind in enumerate(kinds):
            expected = self._expected(arg, position, kind)
            if expected is not kind:
                self._refuse_type(arg, start + position, expected, kind)
        if arg.type_list_attr is not None:
            self._infer_types(arg, arg.type_list_attr, kinds)
        self.types += kinds
        self.ranges[arg.name] = range(start, len(self.types))

    def _tensors(self, arg: ArgDefinition, given: InputType) -> tuple[DataType, ...]:
        if isinstance(given, DataType):
            if arg.is_list:
                text = f"input {arg.name!r} ({arg.type_text}) expects a list of tensors, got one"
                raise _refused(self._definition, INPUTS_FIT, text)
            return (given,)
        if not arg.is_list:
            text = f"input {arg.name!r} ({arg.type_text}) expects one tensor, got a list"
            raise _refused(self._definition, INPUTS_FIT, text)
        return tuple(given)

    def _expected(self, arg: ArgDefinition, position: int, found: DataType) -> DataType:
        if arg.type is not None:
            return arg.type
        if arg.type_attr is not None:
            self._giver.setdefault(arg.type_attr, arg.name)
            return self.attrs.setdefault(arg.type_attr, found)  # type: ignore[return-value]
        known: Any = self.attrs.get(arg.type_list_attr or "", ())
        return known[position] if position < len(known) else found

    def _infer_number(self, arg: ArgDefinition, name: str, found: int) -> None:
        giver = self._giver.setdefault(name, arg.name)
        expected = self.attrs.setdefault(name, found)
        if expected != found:
            self._refuse_length(arg, f"{expected} tensors, which is {name} of {giver!r}", found)

    def _infer_types(self, arg: ArgDefinition, name: str, found: tuple[DataType, ...]) -> None:
        giver = self._giver.setdefault(name, arg.name)
        expected: Any = self.attrs.setdefault(name, found)
        if len(expected) != len(found):
            self._refuse_length(arg, f"{len(expected)} tensors, as {giver!r} has", len(found))

    def _refuse_length(self, arg: ArgDefinition, expected: str, found: int) -> None:
        text = f"input {arg.name!r} expects {expected}; it got {found}"
        raise _refused(self._definition, INPUTS_FIT, text)

    def _refuse_type(
        self, arg: ArgDefinition, index: int, expected: DataType, found: DataType
    ) -> None:
        name = arg.type_attr or arg.type_list_attr
        giver = self._giver.get(name or "")
        reason = f" ({name} is that of input {giver!r})" if giver else ""
        text = f"input #{index} ({arg.name!r}) was expected to be a {expected} tensor"
        raise _refused(
            self._definition, INPUT_TYPES_AGREE, f"{text} but is a {found} tensor{reason}"
        )


def _bound(definition: OpDefinition, input_types: Sequence[InputType]) -> _Bound:
    if len(input_types) != len(definition.inputs):
        expected = ", ".join(map(repr, definition.inputs)) or "none"
        text = f"expects {len(definition.inputs)} inputs ({expected}), got {len(input_types)}"
        raise _refused(definition, INPUTS_FIT, text)
    bound = _Bound(definition)
    for arg, given in zip(definition.inputs, input_types, strict=True):
        bound.bind(arg, given)
    return bound


def _completed(definition: OpDefinition, known: dict[str, AttrValue]) -> dict[str, AttrValue]:
    """Return the values of all attributes in the definition's order, each of them allowed."""
    by_name = definition.attrs_by_name
    for name, value in known.items():
        check_value(definition.name, by_name[name], value)
    return {
        attr.name: known[attr.name] if attr.name in known else _default(definition, attr)
        for attr in definition.attrs
        if attr.name in known or not attr.may_be_absent
    }


def _default(definition: OpDefinition, attr: AttrDefinition) -> AttrValue:
    if not attr.has_default:
        text = f"attribute {attr.name!r} ({attr.type_text}) is missing and has no default"
        raise _refused(definition, ATTRIBUTES_FIT, text)
    return attr.default


def _outputs(
    definition: OpDefinition, values: Mapping[str, AttrValue]
) -> tuple[tuple[DataType, ...], dict[str, range]]:
    types: list[DataType] = []
    ranges: dict[str, range] = {}
    for arg in definition.outputs:
        start = len(types)
        if arg.type_list_attr is not None:
            types += values[arg.type_list_attr]  # type: ignore[arg-type]  # a list of types
        else:
            kind: Any = arg.type if arg.type_attr is None else values[arg.type_attr]
            count: Any = 1 if arg.number_attr is None else values[arg.number_attr]
            types += [kind] * count
        ranges[arg.name] = range(start, len(types))
    return tuple(types), ranges


def _refused(definition: OpDefinition, rule: Rule, text: str) -> InvalidArgumentError:
    name = definition.name
    hint = f"; its signature is {definition!r}"
    return Violation(rule, f"{name}: {text}").error(InvalidArgumentError, operation=name, hint=hint)


# -- the values of attributes: converted from python's, compared with what a definition allows -----


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
    """Return a key for a caller's attributes, quickly; None where that would take a copy.

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
    """Return a key for a converted value among those of its attribute."""
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
