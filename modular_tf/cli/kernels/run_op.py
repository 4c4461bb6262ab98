"""Compute an operation: arrays from files of numpy go in, and what comes out is shown or written.

An input is @FILE.npy, or a number or list of numbers as JSON: in the order of the operation, or by
name (axis=0). An input of several tensors is given by name for each. `modular-tf ops NAME` shows
inputs and attributes.
"""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.kernels.described import KERNEL_HEADERS, kernel_as_dict, kernel_row
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from modular_tf.cli.printer import Printer
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.op_definition import OpDefinition

_MOST_SHOWN = 6


class UsageError(Exception):
    """Arguments do not fit the operation; the message names them and what would fit."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("op", metavar="OP", help="the operation, such as MatMul")
    parser.add_argument(
        "--input", "-i", metavar="[NAME=]VALUE", action="append", default=[],
        help="an input, @FILE.npy or JSON; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--attrs", "-a", metavar="JSON", default="{}",
        help='the attributes, such as {"transpose_a": true, "T": "float"}; a tensor is "@FILE.npy"',
    )  # fmt: skip
    parser.add_argument(
        "--output", "-o", metavar="[NAME=]FILE", action="append", default=[],
        help="write an output into this .npy file; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--device", metavar="NAME", help="where, such as CPU:0; by default the first that can"
    )
    parser.add_argument(
        "--label", metavar="LABEL", default="", help="ask for kernels with this label"
    )
    parser.add_argument(
        "--explain", action="store_true",
        help="show each kernel with the reason for it or against it, and run nothing",
    )  # fmt: skip


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf run` and return its exit status."""
    if find_spec("numpy") is None:
        report_error("run needs numpy: pip install 'modular_tf[numpy]'")
        return Exit.NO
    with session(options) as service:
        owner: Any = service if options.device is None else service.device(options.device)
        op = owner.op(options.op, options.label)
        try:
            files = _output_files(options.output, op.definition)
            inputs, named = _inputs(options.input, op.definition)
            attrs = named | _attributes(options.attrs, op.definition)
        except UsageError as error:
            report_error(str(error))
            return Exit.USAGE
        try:
            if options.explain:
                return _explain(op, inputs, attrs, printer)
            return _run(op, inputs, attrs, files, printer)
        except TypeError as error:  # elements that no tensor has
            report_error(str(error))
            return Exit.NO


def _explain(op: Op, inputs: list[Any], attrs: dict[str, Any], printer: Printer) -> Exit:
    """Show which kernel would serve, and why not the others."""
    found = [
        {**kernel_as_dict(each.registration), "selected": each.is_selected, "reason": each.reason}
        for each in op.explain(*inputs, **attrs)
    ]
    if printer.json:
        printer.json_object(op=op.name, candidates=found)
    else:
        rows = [
            ("yes" if each["selected"] else "no", each["reason"], *kernel_row(each))
            for each in found
        ]
        printer.table(("selected", "reason", *KERNEL_HEADERS), rows)
    if not found:
        report_error(f"no plugin has a kernel of {op.name}")
        return Exit.NOTHING
    return Exit.DONE if any(each["selected"] for each in found) else Exit.NO


def _run(
    op: Op,
    inputs: list[Any],
    attrs: dict[str, Any],
    files: Iterable[tuple[str | None, str]],
    printer: Printer,
) -> Exit:
    """Compute the operation, write the outputs that have files, and show all."""
    result, outputs = op.run(inputs, attrs), op.definition.outputs
    arrays: dict[str, Any] = {}
    for arg, group in zip(outputs, result if len(outputs) > 1 else [result], strict=False):
        found = {f"{arg.name}[{n}]": one for n, one in enumerate(group)} if arg.is_list else {}
        arrays |= found or {arg.name: group}
    for name, array in arrays.items():
        if not hasattr(array, "to_numpy"):
            raise TypeError(f"output {name!r} has strings, which only Python can be given")
    values = {name: array.to_numpy() for name, array in arrays.items()}
    written, left = _write(values, files)
    shown = [
        {
            "name": name,
            "dtype": array.dtype,
            "shape": list(array.shape),
            "device": array.device.name,
            "summary": _summary(values[name]),
            "file": written.get(name),
        }
        for name, array in arrays.items()
    ]
    if printer.json:
        printer.json_object(op=op.name, outputs=shown)
    else:
        rows = [
            (one["name"], one["dtype"], f"({', '.join(map(str, one['shape']))})", one["device"],
             _summary_text(one["summary"]), one["file"])
            for one in shown
        ]  # fmt: skip
        printer.table(("output", "dtype", "shape", "device", "values", "file"), rows)
    for path in left:
        report_error(f"not written: the outputs are {', '.join(arrays) or 'none'}", path)
    return Exit.NO if left else Exit.DONE


# -- what goes in ---------------------------------------------------------------------------------


def _inputs(words: Iterable[str], definition: OpDefinition) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs in the order of the definition, and what has the name of none.

    Args:
        words: `VALUE` for the next input, or `NAME=VALUE`, repeated for an input that is a list.
        definition: The operation.

    Raises:
        UsageError: A word is no value.
        InvalidArgumentError: There are too many inputs, or too few (KN-043).
        OSError: A file cannot be read.
    """
    from modular_tf.kernel.inputs import bind_arguments  # noqa: PLC0415  (not for help)

    by_position: list[Any] = []
    by_name: dict[str, list[Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if equals and name.isidentifier():
            by_name.setdefault(name, []).append(_value(text))
        else:
            by_position.append(_value(word))
    lists = {arg.name for arg in definition.inputs if arg.is_list}
    named = {
        name: values if name in lists or len(values) > 1 else values[0]
        for name, values in by_name.items()
    }
    inputs, others = bind_arguments(definition, by_position, named)
    return [
        [value] if arg.is_list and not isinstance(value, list) else value
        for arg, value in zip(definition.inputs, inputs, strict=True)
    ], others


def _value(text: str) -> Any:
    """Return a number, a string, or an array of a list of them or of a file."""
    if text.startswith("@"):
        return read_array(text[1:])
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

    try:
        literal = json.loads(text)
        array = np.asarray(literal)
    except ValueError as error:
        raise UsageError(
            f"--input {text}: expected @FILE.npy or JSON, such as 1.5 or [[1,2],[3,4]]: {error}"
        ) from None
    if array.dtype.kind == "O":
        raise UsageError(f"--input {text}: expected numbers or strings in the JSON")
    if not isinstance(literal, list):
        return literal
    # As TensorFlow takes numbers of Python.
    usual = {"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype)
    fits = array.dtype.kind != "i" or (array == array.astype(usual)).all()
    return array.astype(usual) if fits else array


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
    if array.dtype.str.lstrip("<>|") != "V2":
        return array
    from ml_dtypes import bfloat16  # noqa: PLC0415  (files of numpy do not keep its name)

    return array.view(bfloat16)


def _attributes(text: str, definition: OpDefinition) -> dict[str, Any]:
    """Return the attributes in a JSON object, with tensors read from their files.

    Raises:
        UsageError: It is no object.
        OSError: A file cannot be read.
    """
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--attrs {text}: expected a JSON object: {error}") from None
    if not isinstance(given, dict):
        raise UsageError(f"--attrs {text}: expected a JSON object, such as {{}}")
    tensors = {attr.name for attr in definition.attrs if attr.kind == "tensor"}
    return {
        name: _value(value) if name in tensors and str(value).startswith("@") else value
        for name, value in given.items()
    }


# -- what comes out -------------------------------------------------------------------------------


def _output_files(words: Iterable[str], definition: OpDefinition) -> list[tuple[str | None, str]]:
    """Return the files for outputs, each with the name of its output, None for the next one.

    Raises:
        UsageError: There are more than outputs, or one is no file.
        OSError: A file could not be written.
    """
    from modular_tf.service.kept.storage.output_file import (  # noqa: PLC0415  (not for help)
        STANDARD_OUTPUT,
        refuse_special,
    )

    names = {arg.name for arg in definition.outputs}
    files: list[tuple[str | None, str]] = []
    for word in words:
        name, _, path = word.partition("=")
        files.append((name, path) if name.partition("[")[0] in names and path else (None, word))
    if len(files) > len(names) and not any(arg.is_list for arg in definition.outputs):
        raise UsageError(f"{definition.name} has {len(names)} outputs, not {len(files)}")
    for _, path in files:
        if path == STANDARD_OUTPUT:
            raise UsageError("name a file with --output; standard output has what is shown")
        refuse_special(path)
    return files


def _write(
    arrays: dict[str, Any], files: Iterable[tuple[str | None, str]]
) -> tuple[dict[str, str], list[str]]:
    """Write arrays into files; return these by the names of outputs, and those without an output.

    Raises:
        OSError: A file cannot be written.
    """
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

    from modular_tf.service.kept.storage.output_file import write_output  # noqa: PLC0415

    named = {name for name, _ in files}
    unnamed = iter([name for name in arrays if name not in named])
    written: dict[str, str] = {}
    left: list[str] = []
    for given, path in files:
        name = next(unnamed, None) if given is None else given
        if name not in arrays:
            left.append(path)
            continue
        content = BytesIO()
        np.save(content, arrays[name], allow_pickle=False)
        write_output(path, content.getvalue())
        written[name] = path
    return written, left


def _summary(values: Any) -> dict[str, Any]:
    """Return the first values; of more numbers than these, their range and mean too."""
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

    first = [_plain(each) for each in values.reshape(-1)[:_MOST_SHOWN]]
    if values.size <= _MOST_SHOWN or values.dtype.kind == "c":
        return {"first": first}
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"first": first, "not_finite": int(numbers.size - finite.size)}
    if finite.size:
        found |= {name: float(getattr(finite, name)()) for name in ("min", "max", "mean")}
    return found


def _plain(value: Any) -> Any:
    """Return a number as JSON can have it; what JSON has no number for as text."""
    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, (bool, int)):
        return item
    number = item if isinstance(item, complex) else float(item)
    return number if isinstance(number, float) and math.isfinite(number) else str(number)


def _summary_text(summary: dict[str, Any]) -> str:
    def short(value: Any) -> str:
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    facts = [f"{n} {short(summary[n])}" for n in ("min", "max", "mean") if n in summary]
    if summary.get("not_finite"):
        facts.append(f"{summary['not_finite']} not finite")
    return ", ".join(facts or map(short, summary["first"]))
