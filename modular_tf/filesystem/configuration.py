"""Options of a filesystem (`TF_Filesystem_Option`) as Python values, and its transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.errors import InternalError
from modular_tf.native.ffi import ffi
from modular_tf.native.strings import encode, read_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.filesystem.filesystem import Filesystem

_INTEGER, _REAL, _BUFFER = 0, 1, 2
OptionValue = int | float | bytes


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a filesystem's configuration.

    Attributes:
        name: Its key.
        values: Integers, reals or byte strings, all of one kind.
        description: For people.
        per_file: Whether it holds for single files rather than for the filesystem.
    """

    name: str
    values: tuple[OptionValue, ...]
    description: str = ""
    per_file: bool = False


def option_from_c(option: Any, plugin: str) -> Option:
    """Copy one `mtf_option` that `plugin` gave; `InternalError` where it makes no sense."""
    name, value = read_string(option.name), option.value
    if name is None or not value:
        raise _malformed("its name or value", plugin)
    # Each is read once: the plugin may change them meanwhile.
    tag, count, items = value.type_tag, value.num_values, value.values
    if count < 0 or tag not in (_INTEGER, _REAL, _BUFFER):
        raise _malformed("its count or type tag", plugin)
    if count and not items:
        raise _malformed("it has a count, but no values", plugin)
    return Option(
        name=name,
        values=tuple(_item_from_c(tag, items[i], plugin) for i in range(count)),
        description=read_string(option.description) or "",
        per_file=bool(option.per_file),
    )


def _malformed(what: str, plugin: str) -> InternalError:
    operation = "get_filesystem_configuration"
    text = f"{operation}: an option is malformed: {what} (plugin {plugin})"
    return InternalError(text, plugin=plugin, operation=operation)


def _item_from_c(tag: int, item: Any, plugin: str) -> OptionValue:
    if tag == _INTEGER:
        return int(item.integer)
    if tag == _REAL:
        return float(item.real)
    length, content = item.buffer.length, item.buffer.bytes
    if length > 0 and not content:
        raise _malformed("a buffer has a length, but no bytes", plugin)
    return bytes(ffi.buffer(content, length)) if length > 0 else b""


class OptionsForC:
    """An array of `mtf_option` with all that it points to; valid while this object lives.

    `TypeError` where the values of one option are not all of one kind.
    """

    def __init__(self, options: Sequence[Option]) -> None:
        self._memory: list[Any] = []
        self.array = ffi.new("mtf_option[]", max(len(options), 1))
        self.count = len(options)
        for target, option in zip(self.array, options, strict=False):
            target.name = self._new("char[]", encode(option.name))
            target.description = self._new("char[]", encode(option.description))
            target.per_file = int(option.per_file)
            target.value = self._value(option)

    def _new(self, cdecl: str, init: Any) -> Any:
        made = ffi.new(cdecl, init)
        self._memory.append(made)
        return made

    def _value(self, option: Option) -> Any:
        items: list[dict[str, Any]]
        kinds = {type(value) for value in option.values}
        if kinds <= {bool, int}:
            tag, items = _INTEGER, [{"integer": value} for value in option.values]
        elif kinds <= {bool, int, float}:
            tag, items = _REAL, [{"real": value} for value in option.values]
        elif kinds == {bytes}:
            tag = _BUFFER
            items = [
                {"buffer": {"bytes": self._new("char[]", value), "length": len(value)}}
                for value in option.values
                if isinstance(value, bytes)
            ]
        else:
            raise TypeError(
                f"option {option.name!r}: values must be all numbers or all bytes: {kinds}"
            )
        values = self._new("mtf_option_item[]", items or [{}])
        fields = {"type_tag": tag, "num_values": len(items), "values": values}
        return self._new("mtf_option_value *", fields)


class Transaction:
    """A plugin's transaction token, which only its own filesystem understands.

    The token belongs to the plugin and ends with `end_transaction`, or with the worker process
    in which that runs.

    Attributes:
        filesystem: Where it came from.
    """

    __slots__ = ("filesystem", "token")

    def __init__(self, filesystem: Filesystem, token: Any) -> None:
        self.filesystem = filesystem
        self.token = token
