"""One call of an operation as kernels see it: types of all tensors, values of all attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from modular_tf.abi.data_types import DataType
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.attributes import AttrValue, check_value, convert_value, freeze
from modular_tf.rules import Rule, Violation
from modular_tf.rules.kernel import ATTRIBUTES_FIT, INPUT_TYPES_AGREE, INPUTS_FIT

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition

__all__ = ["InputType", "Node", "build_node"]

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
        types += _types_of(arg, values)
        ranges[arg.name] = range(start, len(types))
    return tuple(types), ranges


def _types_of(arg: ArgDefinition, values: Mapping[str, Any]) -> Sequence[DataType]:
    if arg.type_list_attr is not None:
        return values[arg.type_list_attr]  # type: ignore[no-any-return]
    kind: Any = arg.type if arg.type_attr is None else values[arg.type_attr]
    return [kind] * (1 if arg.number_attr is None else values[arg.number_attr])


def _refused(definition: OpDefinition, rule: Rule, text: str) -> InvalidArgumentError:
    name = definition.name
    hint = f"; its signature is {definition!r}"
    return Violation(rule, f"{name}: {text}").error(InvalidArgumentError, operation=name, hint=hint)
