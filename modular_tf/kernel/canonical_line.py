r"""Definitions of operations as lines of text, one line each: `Name|flags|attrs|inputs|outputs`.

The native code gives the definitions of plugins in this form, and the table of TensorFlow's own
operations stores them in it.

* flags: of the letters S (stateful), C (commutative), A (aggregate), U (allows uninitialized
  input) and D (deprecated), in this order.
* attrs, inputs and outputs: lists joined by `;`, in the order of the definition. There is no blank
  outside of strings, and neither `|` nor `;` within them.
* attr: `name:type`. The type is `string`, `int`, `float`, `bool`, `type`, `shape`, `tensor`, `func`
  or a list of one of them, `list(int)`. The allowed values come behind the type of the element:
  `type{float,int32}`, `list(string{"a","b"})`. Then follow, each if there is one, `>=` and the
  minimum, and `=` and the default.
* input or output: `name:` and a data type, or the name of an attribute of type `type` or
  `list(type)`; `N*` before it says that there are as many as the attribute N tells; `Ref(…)` around
  all of it says that they are references. The minimum 1 of attributes that count or list tensors
  is written out.

An example:
`ConcatV2||N:int>=2;T:type;Tidx:type{int32,int64}=int32|values:N*T;axis:Tidx|output:T`.

Defaults and allowed values:

=========  ==============================================================================
string     in double quotes, printable ASCII; `\"` and `\\`, and every other byte as `\x` and
           two digits, as are `|` (`\x7c`) and `;` (`\x3b`)
int        decimal
float      the shortest decimal that stands for the same 32-bit number; `inf`, `-inf`, `nan`
bool       `true` or `false`
type       the short name: `float`, `int32`, `half`
shape      `[2,-1]` with -1 for an unknown size, `?` for an unknown rank
tensor     `tensor(…)`: the text of the definition, `{…}` in protobuf's text format, each byte
           as two hexadecimal digits
func       `func("name")`
a list     `[a,b]` of these
=========  ==============================================================================

The reader also takes UTF-8 and the other escapes of C in strings, and any spelling of a number.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.abi.data_types import DATA_TYPES, DataType
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_definition import (
    ArgDefinition,
    AttrDefinition,
    FunctionName,
    OpDefinition,
    TensorText,
    parameter_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from modular_tf.kernel.op_definition import AttrDefault, Scalar

__all__ = ["FLAGS", "read_op_definition", "shortest_float"]

FLAGS = {
    "S": "is_stateful",
    "C": "is_commutative",
    "A": "is_aggregate",
    "U": "allows_uninitialized_input",
    "D": "is_deprecated",
}
"""What each flag says: the attribute of `OpDefinition`, in the order in which lines have them."""

_Value = TypeVar("_Value")

_TYPES_BY_SHORT_NAME = {each.name: each for each in DATA_TYPES}

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_INT = re.compile(r"-?\d+")
_FLOAT = re.compile(r"[-+]?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)")
_WORD = re.compile(r"\w+")
_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


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
    defined = tuple(_read_attr(_Scanner(each, name)) for each in _split(attrs))
    by_name = {attr.name: attr for attr in defined}
    definition = replace(
        _read_flags(flags, name),
        attrs=defined,
        inputs=tuple(_read_arg(_Scanner(each, name), by_name) for each in _split(inputs)),
        outputs=tuple(_read_arg(_Scanner(each, name), by_name) for each in _split(outputs)),
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


def _read_attr(scanner: _Scanner) -> AttrDefinition:
    name = scanner.word()
    scanner.expect(":")
    is_list = scanner.take("list(")
    kind = _read_kind(scanner)
    allowed = _read_allowed(scanner, kind) if scanner.is_at("{") else None
    if is_list:
        scanner.expect(")")
    minimum = _read_int(scanner) if scanner.take(">=") else None
    has_default = scanner.take("=")
    default = _read_value(scanner, kind, is_list=is_list) if has_default else None
    scanner.end()
    return AttrDefinition(name, kind, is_list, allowed, minimum, default, has_default)


def _read_kind(scanner: _Scanner) -> str:
    kind = scanner.word()
    if kind not in _READERS:
        raise scanner.error(f"expected one of {', '.join(_READERS)}", behind=kind)
    return kind


def _read_arg(scanner: _Scanner, attrs: Mapping[str, AttrDefinition]) -> ArgDefinition:
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
    arg: ArgDefinition, element: str, attrs: Mapping[str, AttrDefinition], scanner: _Scanner
) -> ArgDefinition:
    """Return an argument with what a name says of its type: a type, or else an attribute."""
    known = _TYPES_BY_SHORT_NAME.get(element)
    if known is not None:
        return replace(arg, type=known)
    attr = _attr_of_kind("type", element, attrs, scanner)
    return replace(arg, type_list_attr=element) if attr.is_list else replace(arg, type_attr=element)


def _attr_of_kind(
    kind: str, name: str, attrs: Mapping[str, AttrDefinition], scanner: _Scanner
) -> AttrDefinition:
    attr = attrs.get(name)
    if attr is None or attr.kind != kind:
        raise scanner.error(f"expected an attribute of type {kind}", behind=name)
    return attr


class _Scanner:
    """A position in a text that moves over what is read."""

    __slots__ = ("position", "subject", "text")

    def __init__(self, text: str, subject: str) -> None:
        self.text = text
        self.subject = subject
        self.position = 0

    def take(self, literal: str) -> bool:
        """Move over a literal if it comes next; return whether it does."""
        found = self.is_at(literal)
        if found:
            self.position += len(literal)
        return found

    def is_at(self, literal: str) -> bool:
        """Return whether a literal comes next."""
        return self.text.startswith(literal, self.position)

    def expect(self, literal: str) -> None:
        """Move over a literal, which must come next."""
        if not self.take(literal):
            raise self.error(f"expected {literal!r}")

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Move over what matches a pattern, and must come next."""
        match = pattern.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected {what}")
        self.position = match.end()
        return match

    def word(self) -> str:
        """Move over a name."""
        return self.match(_WORD, "a name").group()

    def end(self) -> None:
        """Check that nothing is left."""
        if self.position < len(self.text):
            raise self.error("expected the end")

    def error(self, problem: str, *, behind: str = "") -> InvalidArgumentError:
        """Return the error for what is at the position, or at the text just moved over."""
        position = self.position - len(behind)
        found = self.text[position : position + 20] or "the end"
        return InvalidArgumentError(
            f"definition of {self.subject}: {problem} at {position} of {self.text!r}, "
            f"found {found!r}"
        )


def _read_value(scanner: _Scanner, kind: str, *, is_list: bool) -> AttrDefault:
    """Return the value of an attribute of a kind."""
    read = _READERS[kind]
    return _read_list(scanner, read, "[", "]") if is_list else read(scanner)


def _read_allowed(scanner: _Scanner, kind: str) -> tuple[str | DataType, ...]:
    """Return the values that an attribute of a kind may have: strings or types."""
    read = _READERS_OF_ALLOWED.get(kind)
    if read is None:
        raise scanner.error(f"expected no allowed values for {kind}")
    return _read_list(scanner, read, "{", "}")


def _read_list(
    scanner: _Scanner, read: Callable[[_Scanner], _Value], opening: str, closing: str
) -> tuple[_Value, ...]:
    """Return the values between two brackets."""
    scanner.expect(opening)
    if scanner.take(closing):
        return ()
    values = [read(scanner)]
    while scanner.take(","):
        values.append(read(scanner))
    scanner.expect(closing)
    return tuple(values)


def _read_string(scanner: _Scanner) -> str:
    escaped = scanner.match(_STRING, "a string in double quotes").group(1)
    content = escaped.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescaped, content).decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code.startswith(b"x"):
        return bytes([int(code[1:], 16)])
    if code[:1].isdigit():
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPED.get(code, code)


def _read_int(scanner: _Scanner) -> int:
    """Return the integer that comes next."""
    return int(scanner.match(_INT, "an integer").group())


def _read_float(scanner: _Scanner) -> float:
    return shortest_float(float(scanner.match(_FLOAT, "a number").group()))


def _read_bool(scanner: _Scanner) -> bool:
    if scanner.take("true"):
        return True
    scanner.expect("false")
    return False


def _read_type(scanner: _Scanner) -> DataType:
    name = scanner.word()
    known = _TYPES_BY_SHORT_NAME.get(name)
    if known is None:
        raise scanner.error("expected a data type", behind=name)
    return known


def _read_shape(scanner: _Scanner) -> tuple[int, ...] | None:
    return None if scanner.take("?") else _read_list(scanner, _read_int, "[", "]")


def _read_tensor(scanner: _Scanner) -> TensorText:
    scanner.expect("tensor(")
    content = bytes.fromhex(scanner.match(_HEX, "hexadecimal digits").group())
    scanner.expect(")")
    return TensorText(content.decode("utf-8", "surrogateescape"))


def _read_func(scanner: _Scanner) -> FunctionName:
    scanner.expect("func(")
    name = _read_string(scanner)
    scanner.expect(")")
    return FunctionName(name)


_READERS: dict[str, Callable[[_Scanner], Scalar]] = {
    "string": _read_string,
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "type": _read_type,
    "shape": _read_shape,
    "tensor": _read_tensor,
    "func": _read_func,
}

_READERS_OF_ALLOWED: dict[str, Callable[[_Scanner], str | DataType]] = {
    "string": _read_string,
    "type": _read_type,
}


def shortest_float(value: float) -> float:
    """Return the number of the fewest digits that stands for the same 32-bit number.

    All NaNs are one object, so that definitions with them can be equal.
    """
    if math.isnan(value):
        return math.nan
    try:
        (single,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    texts = (f"{single:.{digits}g}" for digits in range(6, 10))
    return next((float(each) for each in texts if _is_single(each, single)), single)


def _is_single(text: str, single: float) -> bool:
    """Return whether a text stands for a 32-bit number."""
    try:
        return bool(struct.unpack("f", struct.pack("f", float(text)))[0] == single)
    except OverflowError:
        return False
