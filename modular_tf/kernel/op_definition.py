"""Definitions of operations: their arguments, attributes and signature."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.abi.data_types import DataType

__all__ = [
    "ArgDefinition",
    "AttrDefault",
    "AttrDefinition",
    "FunctionName",
    "OpDefinition",
    "Scalar",
    "TensorText",
    "parameter_name",
]


class TensorText(NamedTuple):
    """A tensor as definitions give one for a default: `{…}` in the text format of protobuf."""

    text: str


class FunctionName(NamedTuple):
    """The name of a function, as definitions give one for a default."""

    name: str


Scalar: TypeAlias = (
    "int | float | bool | str | DataType | tuple[int, ...] | TensorText | FunctionName | None"
)
"""A value that is not a list; None stands for a shape of unknown rank."""
AttrDefault: TypeAlias = "Scalar | tuple[Scalar, ...]"
"""A value in a definition.

Strings hold bytes that are not UTF-8 as surrogates (`surrogateescape`). Shapes are tuples with -1
for an unknown size, and None if even the rank is unknown. Lists are tuples of these.
"""


class _Text(str):
    """Text that stands in a signature without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class ArgDefinition:
    """One input or output of an operation; it stands for several tensors if it is a list.

    Exactly one of `type`, `type_attr` and `type_list_attr` is given.

    Attributes:
        name: As the definition writes it.
        type: The data type of every tensor, if it is fixed.
        type_attr: The attribute of kind "type" that holds the data type.
        number_attr: The attribute of kind "int" that holds how many tensors of one type these
            are, None for a single tensor.
        type_list_attr: The attribute of kind "type" and a list that holds one type per tensor.
        is_ref: Whether tensors are references to variables.
    """

    name: str
    type: DataType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it stands for a list of tensors."""
        return (self.number_attr or self.type_list_attr) is not None

    @property
    def attrs(self) -> tuple[str, ...]:
        """The attributes that hold types and number: an input gives values to them."""
        names = (self.number_attr, self.type_attr, self.type_list_attr)
        return tuple(name for name in names if name is not None)

    @property
    def type_text(self) -> str:
        """The type as canonical lines write it: "T", "N*float", "Ref(T)"."""
        element = self.type_attr or self.type_list_attr or str(self.type)
        text = f"{self.number_attr}*{element}" if self.number_attr else element
        return f"Ref({text})" if self.is_ref else text

    def __repr__(self) -> str:
        return f"{self.name}: {self.type_text}"


@dataclass(frozen=True, repr=False, eq=False)
class AttrDefinition:
    """One attribute of an operation.

    Attributes:
        name: As the definition writes it.
        kind: Of the value, or of each element of a list: "string", "int", "float", "bool", "type",
            "shape", "tensor" or "func".
        is_list: Whether the value is a list of the kind.
        allowed: The values that the attribute, or each element of the list, may have; None for all.
        minimum: The least value of an int, or the least length of a list; None for none.
        default: The value where a caller gives none; means nothing unless `has_default`.
        has_default: Whether a caller may leave the attribute out.
    """

    name: str
    kind: str
    is_list: bool = False
    allowed: tuple[str | DataType, ...] | None = None
    minimum: int | None = None
    default: AttrDefault = None
    has_default: bool = False

    def _key(self) -> tuple[Any, ...]:
        # A tuple finds a default that is no number equal to itself; from Python 3.13 on the
        # comparison that a dataclass makes does not.
        return tuple([getattr(self, each.name) for each in fields(self)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AttrDefinition) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def may_be_absent(self) -> bool:
        """Whether a node may lack it: kernels ask whether a tensor is there."""
        return self.kind == "tensor" and not self.has_default

    @property
    def type_text(self) -> str:
        """What values may be, readable: "list(int) >= 2", "type in {float, half}"."""
        text = f"list({self.kind})" if self.is_list else self.kind
        if self.allowed is not None:
            text += f" in {{{', '.join(_allowed_text(each) for each in self.allowed)}}}"
        return text if self.minimum is None else f"{text} >= {self.minimum}"

    def __repr__(self) -> str:
        text = f"{self.name}: {self.type_text}"
        return f"{text} = {self.default!r}" if self.has_default else text


def _allowed_text(value: str | DataType) -> str:
    return repr(value) if isinstance(value, str) else value.name


@dataclass(frozen=True, repr=False)
class OpDefinition:
    """The interface of one operation.

    Two are equal if they say the same; who says it (`source`) does not count.

    Attributes:
        name: Of the operation.
        inputs: In the order in which a call gives them.
        outputs: In the order of the results.
        attrs: In the order of the definition.
        is_stateful: Whether calls with equal inputs may differ.
        is_commutative: Whether two inputs may change places.
        is_aggregate: Whether it combines any number of equal inputs.
        allows_uninitialized_input: Whether inputs may be variables without a value.
        is_deprecated: Whether it should not be used any more.
        source: Who defines it: the name of a plugin, or a release of TensorFlow.
        attrs_by_name: The attributes by their names; not to be changed.
        inferred_attrs: The names of the attributes that the inputs give: types and numbers of
            tensors.
    """

    name: str
    inputs: tuple[ArgDefinition, ...] = ()
    outputs: tuple[ArgDefinition, ...] = ()
    attrs: tuple[AttrDefinition, ...] = ()
    is_stateful: bool = False
    is_commutative: bool = False
    is_aggregate: bool = False
    allows_uninitialized_input: bool = False
    is_deprecated: bool = False
    source: str = field(default="", compare=False)
    attrs_by_name: Mapping[str, AttrDefinition] = field(init=False, compare=False)
    inferred_attrs: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {attr.name: attr for attr in self.attrs}
        inferred = frozenset(name for each in self.inputs for name in each.attrs)
        object.__setattr__(self, "attrs_by_name", by_name)
        object.__setattr__(self, "inferred_attrs", inferred)

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of a call in Python.

        Inputs come first, by position or by name; then, by name only, the attributes that no input
        gives. A name that is a keyword of Python has an underscore behind it.
        """
        inputs = [_input_parameter(each) for each in self.inputs]
        given = (each for each in self.attrs if each.name not in self.inferred_attrs)
        attrs = [_attr_parameter(each) for each in given]
        return inspect.Signature([*inputs, *attrs], return_annotation=_result_text(self.outputs))

    def __repr__(self) -> str:
        inferred = (repr(attr) for attr in self.attrs if attr.name in self.inferred_attrs)
        return "; ".join([f"{self.name}{self.signature}", *inferred])


def parameter_name(name: str) -> str:
    """Return the name of the parameter in Python for an input or attribute."""
    return f"{name}_" if iskeyword(name) else name


def _input_parameter(arg: ArgDefinition) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(parameter_name(arg.name), kind, annotation=_Text(arg.type_text))


def _attr_parameter(attr: AttrDefinition) -> inspect.Parameter:
    name = parameter_name(attr.name)
    default = attr.default if attr.has_default or attr.may_be_absent else inspect.Parameter.empty
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=_Text(attr.type_text))


def _result_text(outputs: tuple[ArgDefinition, ...]) -> _Text | None:
    """Return the outputs as a signature shows them: nothing, one, or several in parentheses."""
    if len(outputs) > 1:
        return _Text(f"({', '.join(map(repr, outputs))})")
    return _Text(repr(outputs[0])) if outputs else None
