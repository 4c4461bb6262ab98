"""Inputs, attributes and output files of an operation, as the words of a command name them."""

from __future__ import annotations

import json
import os
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.attributes import check_value, convert_value
from modular_tf.service.kept.storage.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition

_UNKNOWN_RANK = "?"


class WordError(Exception):
    """Words of the command do not fit the operation; the message says which, and what would."""


class Word(NamedTuple):
    """One value on the command line: `VALUE`, or `NAME=VALUE`.

    Attributes:
        name: Of the argument that it is for, None for the next one.
        value: What follows.
    """

    name: str | None
    value: str


# -- attributes -----------------------------------------------------------------------------------


def attributes(words: Iterable[str], definitions: Sequence[OpDefinition]) -> dict[str, Any]:
    """Return the attributes that words give: `transpose_a=true`, `strides=1,2,2,1`, `T=half`.

    Args:
        words: One for each attribute.
        definitions: Of the operation, and of those that may compute it.

    Raises:
        WordError: No definition has the attribute, or it cannot have the value.
    """
    known = {name: attr for each in reversed(definitions) for name, attr in _attrs(each)}
    given = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise WordError(f"--attr {word}: write NAME=VALUE")
        if name not in known:
            op = definitions[0].name
            raise WordError(f"{op} has no attribute {name!r}; {_meant(name, known)}")
        given[name] = _value(definitions[0].name, known[name], text)
    return given


def _attrs(definition: OpDefinition) -> Iterable[tuple[str, AttrDefinition]]:
    inferred = definition.inferred_attrs
    return ((name, each) for name, each in definition.attrs_by_name.items() if name not in inferred)


def _meant(name: str, known: Iterable[str]) -> str:
    """Return which names somebody may have meant."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


def _value(op: str, attr: AttrDefinition, text: str) -> Any:
    try:
        value = _elements(attr, text) if attr.is_list else _READERS[attr.kind](text)
        check_value(op, attr, convert_value(op, attr, value))
    except InvalidArgumentError as error:
        raise WordError(error.message) from None
    except ValueError as error:
        why = f"{op}: attribute {attr.name!r} expects {attr.type_text}, got {text!r}"
        raise WordError(f"{why}: {error}" if str(error) else why) from None
    return value


def _elements(attr: AttrDefinition, text: str) -> list[Any]:
    """Return the elements of a list: `1,2,3`, `[1,2,3]`, or of shapes `[[2,3],?]`."""
    if attr.kind == "shape":
        shapes = json.loads(text.replace(_UNKNOWN_RANK, "null"))
        if not isinstance(shapes, list):
            raise ValueError("write a list of shapes, such as [[2,3],?]")
        return shapes
    inner = text.removeprefix("[").removesuffix("]").strip()
    return [_READERS[attr.kind](each.strip()) for each in inner.split(",")] if inner else []


def _to_bool(text: str) -> bool:
    if text.lower() not in {"true", "false", "1", "0"}:
        raise ValueError("write true or false")
    return text.lower() in {"true", "1"}


def _to_int(text: str) -> int:
    return int(text, 0)


def _to_shape(text: str) -> list[int] | None:
    if text.strip() == _UNKNOWN_RANK:
        return None
    inner = text.strip().removeprefix("[").removesuffix("]")
    return [int(size) for size in inner.split(",")] if inner else []


def _to_tensor(text: str) -> Any:
    return read_array(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "bool": _to_bool,
    "int": _to_int,
    "float": float,
    "string": str,
    "type": str,
    "shape": _to_shape,
    "tensor": _to_tensor,
    "func": str,
}


# -- inputs and outputs ---------------------------------------------------------------------------


def inputs(words: Iterable[str], definition: OpDefinition) -> list[Any]:
    """Return the inputs that words give, in the order of the definition.

    A word is a file of numpy, a number or a list of numbers, for the next input that no word names
    or, behind `NAME=`, for that input. An input that is a list takes one word for each tensor.

    Raises:
        WordError: An input lacks a word, or a word an input.
        OSError: A file cannot be read.
    """
    args = definition.inputs
    parted = [_parted(word, args) for word in words]
    unnamed = [word.value for word in parted if word.name is None]
    given = {arg.name: [word.value for word in parted if word.name == arg.name] for arg in args}
    _distribute(definition, given, unnamed)
    return [_input(arg, given[arg.name]) for arg in args]


def _parted(word: str, args: Iterable[ArgDefinition]) -> Word:
    """Return name and value of a word; a file may have "=" in its name."""
    name, equals, value = word.partition("=")
    names = [arg.name for arg in args]
    if equals and name in names:
        return Word(name, value)
    if equals and name.isidentifier() and not os.path.exists(word):
        raise WordError(f"there is no {name!r} in the operation; {_meant(name, names)}")
    return Word(None, word)


def _distribute(
    definition: OpDefinition, given: Mapping[str, list[str]], unnamed: list[str]
) -> None:
    """Give values without a name to the inputs that have none."""
    waiting = [arg for arg in definition.inputs if not given[arg.name]]
    spare = len(unnamed) - len(waiting)
    for arg in waiting:
        count = 1
        if arg.is_list:
            count, spare = max(1 + spare, 0), 0
        given[arg.name].extend(unnamed[:count])
        del unnamed[:count]
    missing = [arg.name for arg in waiting if not given[arg.name] and not arg.is_list]
    several = [
        arg.name for arg in definition.inputs if len(given[arg.name]) > 1 and not arg.is_list
    ]
    if missing or unnamed or several:
        too_many = unnamed or several
        what = f"too many: {', '.join(too_many)}" if too_many else f"missing: {', '.join(missing)}"
        names = ", ".join(arg.name for arg in definition.inputs) or "none"
        raise WordError(f"{definition.name} takes these inputs: {names}; {what}")


def _input(arg: ArgDefinition, values: Sequence[str]) -> Any:
    read = [_tensor(value) for value in values]
    return read if arg.is_list else read[0]


def _tensor(value: str) -> Any:
    """Return a number, or an array of a list of numbers or of a file."""
    if os.path.exists(value):
        return read_array(value)
    try:
        literal = json.loads(value)
    except ValueError:
        return read_array(value)
    if isinstance(literal, (bool, int, float)):
        return literal
    return _array_of(literal) if isinstance(literal, list) else read_array(value)


def _array_of(numbers: list[Any]) -> Any:
    """Return an array of the types that TensorFlow takes numbers for."""
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

    try:
        array = np.asarray(numbers)
    except ValueError:
        raise WordError(f"{numbers} is no list of numbers, all rows of which are as long") from None
    if array.dtype.kind == "i":
        return array.astype(np.int32)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def read_array(path: str) -> Any:
    """Return the array in a file of numpy.

    Raises:
        OSError: It cannot be read, or is no such file.
    """
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise OSError(0, f"is no array of numpy (.npy): {error}", path) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise OSError(0, "holds several arrays (.npz); give one in a .npy file", path)
    return _with_bfloat16(array)


def _with_bfloat16(array: Any) -> Any:
    """Return it with elements of bfloat16, whose name files of numpy do not keep."""
    if array.dtype.str.lstrip("<>|") != "V2":
        return array
    from ml_dtypes import bfloat16  # noqa: PLC0415  (rarely used)

    return array.view(bfloat16)


def output_files(words: Iterable[str], definition: OpDefinition) -> list[Word]:
    """Return the files for outputs, by the names of the outputs or in their order.

    Raises:
        WordError: There are more than outputs.
    """
    found = [_parted(word, definition.outputs) for word in words]
    if any(word.value == STANDARD_OUTPUT for word in found):
        raise WordError("name a file with --output; standard output has what is shown")
    may_be_many = any(arg.is_list for arg in definition.outputs)
    if len(found) > len(definition.outputs) and not may_be_many:
        raise WordError(
            f"{definition.name} has {len(definition.outputs)} outputs, not {len(found)}"
        )
    return found
