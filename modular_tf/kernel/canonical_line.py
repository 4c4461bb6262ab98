"""Definitions of operations as lines of text, one line each: `Name|flags|attrs|inputs|outputs`.

The native code gives the definitions of plugins in this form, and the table of TensorFlow's own
operations stores them in it.

* flags: of the letters S (stateful), C (commutative), A (aggregate), U (allows uninitialized
  input) and D (deprecated), in this order.
* attrs, inputs and outputs: lists joined by `;`, in the order of the definition. There is no blank
  outside of strings, and neither `|` nor `;` within them.
* attr: `name:type`. The type is `string`, `int`, `float`, `bool`, `type`, `shape`, `tensor`, `func`
  or a list of one of them, `list(int)`. The allowed values come behind the type of the element:
  `type{float,int32}`, `list(string{"a","b"})`. Then follow, each if there is one, `>=` and the
  minimum, and `=` and the default (`modular_tf.kernel.canonical_values`).
* input or output: `name:` and a data type, or the name of an attribute of type `type` or
  `list(type)`; `N*` before it says that there are as many as the attribute N tells; `Ref(…)` around
  all of it says that they are references. The minimum 1 of attributes that count or list tensors
  is written out.

An example:
`ConcatV2||N:int>=2;T:type;Tidx:type{int32,int64}=int32|values:N*T;axis:Tidx|output:T`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.canonical_values import (
    READERS,
    TYPES_BY_SHORT_NAME,
    Scanner,
    read_allowed,
    read_int,
    read_value,
    write_value,
)
from modular_tf.kernel.op_definition import (
    ArgDefinition,
    AttrDefinition,
    OpDefinition,
    parameter_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLAGS", "canonical_line", "read_op_definition"]

FLAGS = {
    "S": "is_stateful",
    "C": "is_commutative",
    "A": "is_aggregate",
    "U": "allows_uninitialized_input",
    "D": "is_deprecated",
}
"""What each flag says: the attribute of `OpDefinition`, in the order in which lines have them."""


def read_op_definition(line: str, source: str = "") -> OpDefinition:
    """Return the definition that a canonical line writes, which has no line break.

    Bytes that are not UTF-8 may stand in it as surrogates. `source` is who defines the operation: a
    plugin, or a release of TensorFlow. Raises InvalidArgumentError, which names the position, if
    the line is not canonical.
    """
    try:
        name, flags, attrs, inputs, outputs = line.split("|")
    except ValueError:
        raise InvalidArgumentError(
            f"a definition has 5 parts between '|', this one {line.count('|') + 1}: {line!r}"
        ) from None
    defined = tuple(_read_attr(Scanner(each, name)) for each in _split(attrs))
    by_name = {attr.name: attr for attr in defined}
    definition = replace(
        _read_flags(flags, name),
        attrs=defined,
        inputs=tuple(_read_arg(Scanner(each, name), by_name) for each in _split(inputs)),
        outputs=tuple(_read_arg(Scanner(each, name), by_name) for each in _split(outputs)),
        source=source,
    )
    _check_names(definition)
    return definition


def _check_names(definition: OpDefinition) -> None:
    """Check that every input and attribute can be a parameter of one signature."""
    names = [arg.name for arg in definition.inputs] + [attr.name for attr in definition.attrs]
    counts = Counter(map(parameter_name, names))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise InvalidArgumentError(
            f"definition of {definition.name}: names of inputs and attributes must differ, "
            f"found twice: {', '.join(twice)}"
        )


def _split(texts: str) -> list[str]:
    return texts.split(";") if texts else []


def _read_flags(flags: str, name: str) -> OpDefinition:
    unknown = set(flags) - set(FLAGS)
    if unknown:
        raise InvalidArgumentError(f"definition of {name}: unknown flags {sorted(unknown)}")
    given: dict[str, Any] = {FLAGS[flag]: True for flag in flags}
    return OpDefinition(name, **given)


def _read_attr(scanner: Scanner) -> AttrDefinition:
    name = scanner.word()
    scanner.expect(":")
    is_list = scanner.take("list(")
    kind = _read_kind(scanner)
    allowed = read_allowed(scanner, kind) if scanner.is_at("{") else None
    if is_list:
        scanner.expect(")")
    minimum = read_int(scanner) if scanner.take(">=") else None
    has_default = scanner.take("=")
    default = read_value(scanner, kind, is_list=is_list) if has_default else None
    scanner.end()
    return AttrDefinition(name, kind, is_list, allowed, minimum, default, has_default)


def _read_kind(scanner: Scanner) -> str:
    kind = scanner.word()
    if kind not in READERS:
        raise scanner.error(f"expected one of {', '.join(READERS)}", behind=kind)
    return kind


def _read_arg(scanner: Scanner, attrs: Mapping[str, AttrDefinition]) -> ArgDefinition:
    name = scanner.word()
    scanner.expect(":")
    is_ref = scanner.take("Ref(")
    element = scanner.word()
    number = None
    if scanner.is_at("*"):
        number = _attr_of_kind("int", element, attrs, scanner).name
        scanner.expect("*")
        element = scanner.word()
    arg = _typed(ArgDefinition(name, number_attr=number, is_ref=is_ref), element, attrs, scanner)
    if is_ref:
        scanner.expect(")")
    scanner.end()
    return arg


def _typed(
    arg: ArgDefinition, element: str, attrs: Mapping[str, AttrDefinition], scanner: Scanner
) -> ArgDefinition:
    """Return an argument with what a name says of its type: a type, or else an attribute."""
    known = TYPES_BY_SHORT_NAME.get(element)
    if known is not None:
        return replace(arg, type=known)
    attr = _attr_of_kind("type", element, attrs, scanner)
    return replace(arg, type_list_attr=element) if attr.is_list else replace(arg, type_attr=element)


def _attr_of_kind(
    kind: str, name: str, attrs: Mapping[str, AttrDefinition], scanner: Scanner
) -> AttrDefinition:
    attr = attrs.get(name)
    if attr is None or attr.kind != kind:
        raise scanner.error(f"expected an attribute of type {kind}", behind=name)
    return attr


def canonical_line(definition: OpDefinition) -> str:
    """Return the line that `read_op_definition` reads as an equal definition."""
    flags = "".join(flag for flag, name in FLAGS.items() if getattr(definition, name))
    attrs = ";".join(map(_attr_text, definition.attrs))
    inputs, outputs = map(_args_text, (definition.inputs, definition.outputs))
    return f"{definition.name}|{flags}|{attrs}|{inputs}|{outputs}"


def _args_text(args: tuple[ArgDefinition, ...]) -> str:
    return ";".join(f"{arg.name}:{arg.type_text}" for arg in args)


def _attr_text(attr: AttrDefinition) -> str:
    element = attr.kind
    if attr.allowed is not None:
        element += f"{{{','.join(write_value(each, attr.kind) for each in attr.allowed)}}}"
    text = f"{attr.name}:list({element})" if attr.is_list else f"{attr.name}:{element}"
    if attr.minimum is not None:
        text += f">={attr.minimum}"
    return f"{text}={_default_text(attr)}" if attr.has_default else text


def _default_text(attr: AttrDefinition) -> str:
    if not attr.is_list:
        return write_value(attr.default, attr.kind)
    values: Any = attr.default
    return f"[{','.join(write_value(each, attr.kind) for each in values)}]"
