"""Definitions of operations written as records, which the package only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.kernel.op_grammar import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition

_PLAIN = set(range(ord(" "), ord("~") + 1)) - set(b'"\\')


def record_of(definition: OpDefinition) -> str:
    """Return the record that `read_op_definition` reads as an equal definition."""
    flags = "".join(flag for flag, name in FLAGS.items() if getattr(definition, name))
    specs = [f"a{attr_spec(each)}" for each in definition.attrs]
    specs += [f"i{arg_spec(each)}" for each in definition.inputs]
    specs += [f"o{arg_spec(each)}" for each in definition.outputs]
    return "\0".join([definition.name, flags, *specs])


def record(line: str) -> str:
    """Return the record of `Name|flags|attrs|inputs|outputs`, lists of specifications by `;`."""
    name, flags, *groups = line.split("|")
    specs = [
        f"{kind}{spec}"
        for kind, group in zip("aio", groups, strict=True)
        for spec in group.split(";")
        if spec
    ]
    return "\0".join([name, flags, *specs])


def attr_spec(attr: AttrDefinition) -> str:
    """Return the specification of an attribute."""
    write = _WRITERS.get(attr.kind, str)
    kind = attr.kind
    if attr.allowed is not None:
        kind = f"{{{','.join(map(write, attr.allowed))}}}"
    text = f"{attr.name}:list({kind})" if attr.is_list else f"{attr.name}:{kind}"
    if attr.minimum is not None:
        text += f">={attr.minimum}"
    if not attr.has_default:
        return text
    default: Any = attr.default
    return text + (f"=[{','.join(map(write, default))}]" if attr.is_list else f"={write(default)}")


def arg_spec(arg: ArgDefinition) -> str:
    """Return the specification of an input or output."""
    return f"{arg.name}:{arg.type_text}"


def _quoted(value: str) -> str:
    content = value.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(c) if c in _PLAIN else f"\\{c:03o}" for c in content) + '"'


def _shape(sizes: tuple[int, ...] | None) -> str:
    if sizes is None:
        return "{unknown_rank:true}"
    return "{" + "".join(f"dim{{size:{size}}}" for size in sizes) + "}"


_WRITERS: dict[str, Callable[..., str]] = {
    "string": _quoted,
    "bool": lambda value: "true" if value else "false",
    "shape": _shape,
    "tensor": lambda value: value.text,
    "func": lambda value: f"{{name:{_quoted(value.name)}}}",
}
