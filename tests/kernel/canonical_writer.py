"""Definitions of operations as canonical lines, to compare them with what tests expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.kernel.op_grammar import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.kernel.op_definition import (
        ArgDefinition,
        AttrDefault,
        AttrDefinition,
        OpDefinition,
    )

_ESCAPED_BY_THEMSELVES = '"\\'
_PLAIN = set(range(ord(" "), ord("~") + 1)) - set(b'|;"\\')


def canonical_line(definition: OpDefinition) -> str:
    """Return `Name|flags|attrs|inputs|outputs`; equal definitions have equal lines."""
    flags = "".join(flag for flag, name in FLAGS.items() if getattr(definition, name))
    attrs = ";".join(map(_attr_text, definition.attrs))
    inputs, outputs = map(_args_text, (definition.inputs, definition.outputs))
    return f"{definition.name}|{flags}|{attrs}|{inputs}|{outputs}"


def _args_text(args: tuple[ArgDefinition, ...]) -> str:
    return ";".join(f"{arg.name}:{arg.type_text}" for arg in args)


def _attr_text(attr: AttrDefinition) -> str:
    element = attr.kind
    if attr.allowed is not None:
        element += f"{{{','.join(_write_value(each, attr.kind) for each in attr.allowed)}}}"
    text = f"{attr.name}:list({element})" if attr.is_list else f"{attr.name}:{element}"
    if attr.minimum is not None:
        text += f">={attr.minimum}"
    return f"{text}={_default_text(attr)}" if attr.has_default else text


def _default_text(attr: AttrDefinition) -> str:
    if not attr.is_list:
        return _write_value(attr.default, attr.kind)
    values: Any = attr.default
    return f"[{','.join(_write_value(each, attr.kind) for each in values)}]"


def _write_value(value: AttrDefault, kind: str) -> str:
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
