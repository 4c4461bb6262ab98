r"""The values in canonical lines of definitions: defaults and allowed values.

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
from typing import TYPE_CHECKING, TypeVar

from modular_tf.abi.data_types import DATA_TYPES, DataType
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_definition import FunctionName, TensorText

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.kernel.op_definition import AttrDefault, Scalar

__all__ = [
    "READERS",
    "TYPES_BY_SHORT_NAME",
    "Scanner",
    "read_allowed",
    "read_int",
    "read_value",
    "shortest_float",
    "write_value",
]

Value = TypeVar("Value")

TYPES_BY_SHORT_NAME = {each.name: each for each in DATA_TYPES}

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_INT = re.compile(r"-?\d+")
_FLOAT = re.compile(r"[-+]?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)")
_WORD = re.compile(r"\w+")
_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_ESCAPED_BY_THEMSELVES = '"\\'
_PLAIN = set(range(ord(" "), ord("~") + 1)) - set(b'|;"\\')


class Scanner:
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


def read_value(scanner: Scanner, kind: str, *, is_list: bool) -> AttrDefault:
    """Return the value of an attribute of a kind."""
    read = READERS[kind]
    return _read_list(scanner, read, "[", "]") if is_list else read(scanner)


def read_allowed(scanner: Scanner, kind: str) -> tuple[str | DataType, ...]:
    """Return the values that an attribute of a kind may have: strings or types."""
    read = _READERS_OF_ALLOWED.get(kind)
    if read is None:
        raise scanner.error(f"expected no allowed values for {kind}")
    return _read_list(scanner, read, "{", "}")


def _read_list(
    scanner: Scanner, read: Callable[[Scanner], Value], opening: str, closing: str
) -> tuple[Value, ...]:
    """Return the values between two brackets."""
    scanner.expect(opening)
    if scanner.take(closing):
        return ()
    values = [read(scanner)]
    while scanner.take(","):
        values.append(read(scanner))
    scanner.expect(closing)
    return tuple(values)


def _read_string(scanner: Scanner) -> str:
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


def read_int(scanner: Scanner) -> int:
    """Return the integer that comes next."""
    return int(scanner.match(_INT, "an integer").group())


def _read_float(scanner: Scanner) -> float:
    return shortest_float(float(scanner.match(_FLOAT, "a number").group()))


def _read_bool(scanner: Scanner) -> bool:
    if scanner.take("true"):
        return True
    scanner.expect("false")
    return False


def _read_type(scanner: Scanner) -> DataType:
    name = scanner.word()
    known = TYPES_BY_SHORT_NAME.get(name)
    if known is None:
        raise scanner.error("expected a data type", behind=name)
    return known


def _read_shape(scanner: Scanner) -> tuple[int, ...] | None:
    return None if scanner.take("?") else _read_list(scanner, read_int, "[", "]")


def _read_tensor(scanner: Scanner) -> TensorText:
    scanner.expect("tensor(")
    content = bytes.fromhex(scanner.match(_HEX, "hexadecimal digits").group())
    scanner.expect(")")
    return TensorText(content.decode("utf-8", "surrogateescape"))


def _read_func(scanner: Scanner) -> FunctionName:
    scanner.expect("func(")
    name = _read_string(scanner)
    scanner.expect(")")
    return FunctionName(name)


READERS: dict[str, Callable[[Scanner], Scalar]] = {
    "string": _read_string,
    "int": read_int,
    "float": _read_float,
    "bool": _read_bool,
    "type": _read_type,
    "shape": _read_shape,
    "tensor": _read_tensor,
    "func": _read_func,
}

_READERS_OF_ALLOWED: dict[str, Callable[[Scanner], str | DataType]] = {
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


def write_value(value: AttrDefault, kind: str) -> str:
    """Return one value, which is no list, of a kind as canonical lines write it."""
    return _WRITERS.get(kind, str)(value)


def _write_string(value: str) -> str:
    content = value.encode("utf-8", "surrogateescape")
    return f'"{"".join(map(_escaped, content))}"'


def _escaped(byte: int) -> str:
    if chr(byte) in _ESCAPED_BY_THEMSELVES:
        return f"\\{chr(byte)}"
    return chr(byte) if byte in _PLAIN else f"\\x{byte:02x}"


def _write_shape(value: tuple[int, ...] | None) -> str:
    return "?" if value is None else f"[{','.join(map(str, value))}]"


_WRITERS: dict[str, Callable[..., str]] = {
    "string": _write_string,
    "bool": lambda value: "true" if value else "false",
    "shape": _write_shape,
    "tensor": lambda value: f"tensor({value.text.encode('utf-8', 'surrogateescape').hex()})",
    "func": lambda value: f"func({_write_string(value.name)})",
}
