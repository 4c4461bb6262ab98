"""The commands on kernels and operations: `kernels`, `ops` and `run`."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

import click

from modular_tf.abi.data_types import DataType
from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.output import report_error
from modular_tf.cli.process import Exit, expect_exit
from modular_tf.cli.values import OPERATION, PLUGIN
from modular_tf.kernel.aliases import aliases_of, computed_by
from modular_tf.kernel.inputs import bind_arguments
from modular_tf.kernel.op_definition import FunctionName, TensorText
from modular_tf.kernel.selection import device_types_of
from modular_tf.service.output_file import STANDARD_OUTPUT, refuse_special, write_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.kernel.op import Op
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.registry import KernelRegistry

KERNEL_COLUMNS = (
    *("op", "device type"),
    ("constraints", lambda one: [f"{each['attr']}={each['type']}" for each in one["constraints"]]),
    *("host args", "priority", "label", "plugin"),
)
"""The columns of a kernel's JSON object in tables."""

_MOST_SHOWN = 6
_PROPERTIES = (
    *("is_stateful", "is_commutative", "is_aggregate"),
    *("allows_uninitialized_input", "is_deprecated"),
)


def kernel_as_dict(kernel: KernelRegistration) -> dict[str, Any]:
    """Return a kernel as a JSON object."""
    types = [{"attr": attr, "type": kind.name} for attr, kind in kernel.constraint_pairs]
    return {
        "op": kernel.op,
        "device_type": kernel.device_type,
        "name": kernel.name,
        "constraints": types,
        "host_args": list(kernel.host_args),
        "priority": kernel.priority,
        "label": kernel.label,
        "asynchronous": kernel.asynchronous,
        "plugin": kernel.plugin,
    }


def definition_as_dict(definition: OpDefinition) -> dict[str, Any]:
    """Return a definition as a JSON object."""
    arguments = {
        kind: [
            {"name": arg.name, "type": arg.type_text, "is_list": arg.is_list, "is_ref": arg.is_ref}
            for arg in args
        ]
        for kind, args in (("inputs", definition.inputs), ("outputs", definition.outputs))
    }
    attrs = [
        {
            "name": attr.name,
            "kind": attr.kind,
            "is_list": attr.is_list,
            "allowed": _as_json(attr.allowed),
            "minimum": attr.minimum,
            "has_default": attr.has_default,
            "default": _as_json(attr.default) if attr.has_default else None,
            "is_inferred": attr.name in definition.inferred_attrs,
        }
        for attr in definition.attrs
    ]
    signature = f"{definition.name}{definition.signature}"
    head = {"name": definition.name, "signature": signature, "source": definition.source}
    properties = {name: getattr(definition, name) for name in _PROPERTIES}
    return {**head, **arguments, "attrs": attrs, **properties}


def _as_json(value: Any) -> Any:
    """Return a value of an attribute as JSON has it: names of types and functions as text."""
    if isinstance(value, (TensorText, FunctionName)):
        return value[0]
    if isinstance(value, tuple):
        return [_as_json(each) for each in value]
    return value.name if isinstance(value, DataType) else value


# -- kernels --------------------------------------------------------------------------------------


@command()
@click.option(
    "--op", type=OPERATION, metavar="NAME", help="only kernels that compute this operation"
)
@click.option("--device-type", metavar="TYPE", help="only kernels for this type of devices")
@click.option("--from", "owner", type=PLUGIN, metavar="NAME", help="only kernels of this plugin")
def kernels(
    call: Invocation, *, op: str | None, device_type: str | None, owner: str | None
) -> Exit:
    """List the kernels that plugins bring: for which operation, type of devices and of elements."""
    # Kernels of an operation's aliases compute it as well.
    names = (op, *(alias.own for alias in (aliases_of(op) if op else ())))
    with call.session() as service:
        found = [
            kernel_as_dict(kernel)
            for name in names
            for kernel in service.kernels(name, device_type, owner)
        ]
    call.show("kernels", found, KERNEL_COLUMNS)
    if found:
        return Exit.DONE
    if op:
        report_error(f"no such kernel of {op!r}; `modular-tf ops {op}` shows more")
    elif device_type or owner:
        report_error("no such kernel; `modular-tf kernels` lists all")
    else:
        report_error("no plugin brings kernels; `modular-tf list` shows what was found")
    return Exit.NOTHING


# -- operations -----------------------------------------------------------------------------------


@command()
@argument("name", type=OPERATION, required=False, help="show this operation in full")
@click.option(
    "--all", "with_all", is_flag=True, help="also list operations that no kernel computes"
)
def ops(call: Invocation, *, name: str | None, with_all: bool) -> Exit:
    """List the operations that plugins compute, or show one: inputs, outputs, kernels and devices.

    Without a name, those that have kernels, under their own name or another one, and those that
    plugins define.
    """
    if name is not None:
        return _show_operation(call, name)
    with call.session() as service:
        listed = list(_listed(service.kernel_registry, with_all=with_all))
    columns = (
        *(("op", "name"), "kernels", "device types", "plugins", ("computed by", "aliases")),
        ("defined by", lambda op: op["source"] or "nobody"),
    )
    call.show("ops", listed, columns)
    if not listed:
        report_error("no plugin brings kernels; `modular-tf ops --all` lists what is defined")
    return Exit.DONE if listed else Exit.NOTHING


def _listed(registry: KernelRegistry, *, with_all: bool) -> Iterator[dict[str, Any]]:
    """Yield the operations with kernels or of plugins, or all, as JSON objects."""
    own = {kernel.op for kernel in registry.kernels()}
    of_plugins = own | {definition.name for definition in registry.plugin_definitions()}
    for name in sorted({*registry.op_names(), *own}):
        aliases = [alias.own for alias in aliases_of(name) if alias.own in own]
        if not (with_all or aliases or name in of_plugins):
            continue
        found = [kernel for op in (name, *aliases) for kernel in registry.kernels_of(op)]
        definition = registry.find_definition(name)
        yield {
            "name": name,
            "kernels": len(found),
            "device_types": list(dict.fromkeys(kernel.device_type for kernel in found)),
            "plugins": list(dict.fromkeys(kernel.plugin for kernel in found)),
            "aliases": aliases,
            "source": None if definition is None else definition.source,
        }


def _show_operation(call: Invocation, name: str) -> Exit:
    """Show an operation in full, with its kernels and the devices that each serves."""
    with call.session() as service:
        definition = service.op_definitions(name)[0]
        aliases = [alias.own for alias in aliases_of(name) if service.kernels(alias.own)]
        served = {
            device.name: device_types_of(device.device_type, is_pluggable=not device.is_host)
            for device in service.devices()
        }
        found = [kernel for op in (name, *aliases) for kernel in service.kernels(op)]
    shown = [
        {
            **kernel_as_dict(kernel),
            "devices": [device for device, types in served.items() if kernel.device_type in types],
        }
        for kernel in found
    ]
    computes = list(computed_by(name))
    op = {**definition_as_dict(definition), "aliases": aliases, "computes": computes}

    def show() -> None:
        properties = [each for each in _PROPERTIES if op[each]]
        call.line(op["signature"])
        call.facts(
            {
                "defined by": op["source"],
                "properties": [each.removeprefix("is_").replace("_", " ") for each in properties],
                "computed by": aliases,
                "computes": computes,
            }
        )
        arguments = [
            (arg["name"], kind, f"{arg['type']} (a list)" if arg["is_list"] else arg["type"])
            for kind in ("input", "output")
            for arg in op[f"{kind}s"]
        ]
        attributes = [
            (
                attr.name,
                attr.type_text,
                "" if attr.default is None else str(_as_json(attr.default)),
                [arg.name for arg in definition.inputs if attr.name in arg.attrs],
            )
            for attr in definition.attrs
        ]
        for headers, rows in (
            (("argument", "is", "type"), arguments),
            (("attribute", "type", "default", "given by"), attributes),
        ):
            if rows:
                call.line()
                call.table(headers, rows)
        call.line()
        if shown:
            call.show("kernels", shown, (*KERNEL_COLUMNS, "devices"))
        else:
            call.line("no plugin has a kernel of it")

    call.show_object({"op": {**op, "kernels": shown}}, show)
    return Exit.DONE


# -- running one ----------------------------------------------------------------------------------


@command()
@argument("op", type=OPERATION, help="the operation, such as MatMul")
@click.option(
    "-i",
    "--input",
    "words",
    metavar="[NAME=]VALUE",
    multiple=True,
    help="an input, @FILE.npy or JSON; may be repeated",
)
@click.option(
    "-a",
    "--attrs",
    metavar="JSON",
    default="{}",
    help='the attributes, such as {"transpose_a": true, "T": "float"}; a tensor is "@FILE.npy"',
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="[NAME=]FILE",
    multiple=True,
    help="write an output into this .npy file; may be repeated",
)
@click.option(
    "--device", metavar="NAME", help="where, such as CPU:0; by default the first that can"
)
@click.option("--label", metavar="LABEL", default="", help="ask for kernels with this label")
@click.option(
    "--explain", is_flag=True,
    help="show each kernel with the reason for it or against it, and run nothing",
)  # fmt: skip
def run(
    call: Invocation,
    *,
    op: str,
    words: tuple[str, ...],
    attrs: str,
    outputs: tuple[str, ...],
    device: str | None,
    label: str,
    explain: bool,
) -> Exit:
    """Compute an operation: arrays from files of numpy go in, and its outputs are shown or written.

    An input is @FILE.npy, or a number or list of numbers as JSON: in the order of the operation, or
    by name (axis=0). An input of several tensors is given by name for each. `modular-tf ops NAME`
    shows inputs and attributes.
    """
    if find_spec("numpy") is None:
        report_error("run needs numpy: pip install 'modular_tf[numpy]'")
        return Exit.NO
    with call.session() as service:
        owner: Any = service if device is None else service.device(device)
        found = owner.op(op, label)
        files = _output_files(outputs, found.definition)
        inputs, named = _inputs(words, found.definition)
        given = named | _attributes(attrs, found.definition)
        try:
            if explain:
                return _explain(found, inputs, given, call)
            return _run(found, inputs, given, files, call)
        except TypeError as error:  # elements that no tensor has
            report_error(str(error))
            return Exit.NO


def _explain(op: Op, inputs: list[Any], attrs: dict[str, Any], call: Invocation) -> Exit:
    """Show which kernel would serve, and why not the others."""
    found = [
        {**kernel_as_dict(each.registration), "selected": each.is_selected, "reason": each.reason}
        for each in op.explain(*inputs, **attrs)
    ]
    code = Exit.DONE if any(each["selected"] for each in found) else Exit.NO
    expect_exit(code if found else Exit.NOTHING)
    chosen = ("selected", lambda each: "yes" if each["selected"] else "no")
    call.show("candidates", found, (chosen, "reason", *KERNEL_COLUMNS), op=op.name)
    if not found:
        report_error(f"no plugin has a kernel of {op.name}")
        return Exit.NOTHING
    return code


def _run(
    op: Op,
    inputs: list[Any],
    attrs: dict[str, Any],
    files: Iterable[tuple[str | None, str]],
    call: Invocation,
) -> Exit:
    """Compute the operation, write the outputs that have files, and show all."""
    result, outputs = op.run(inputs, attrs), op.definition.outputs
    arrays: dict[str, Any] = {}
    for arg, group in zip(outputs, result if len(outputs) > 1 else [result], strict=False):
        if arg.is_list:
            arrays |= {f"{arg.name}[{n}]": one for n, one in enumerate(group)}
        else:
            arrays[arg.name] = group
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
    columns = (
        *(("output", "name"), "dtype"),
        *(("shape", lambda one: f"({', '.join(map(str, one['shape']))})"), "device"),
        *(("values", lambda one: _summary_text(one["summary"])), "file"),
    )
    expect_exit(Exit.NO if left else Exit.DONE)
    call.show("outputs", shown, columns, op=op.name)
    for path in left:
        report_error(f"not written: the outputs are {', '.join(arrays) or 'none'}", path)
    return Exit.NO if left else Exit.DONE


def _inputs(words: Iterable[str], definition: OpDefinition) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs in the order of the definition, and the values of other names.

    A word is `VALUE` for the next input, or `NAME=VALUE`, repeated for an input that is a list.
    """
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
        raise click.UsageError(
            f"--input {text}: expected @FILE.npy or JSON, such as 1.5 or [[1,2],[3,4]]: {error}"
        ) from None
    if array.dtype.kind == "O":
        raise click.UsageError(f"--input {text}: expected numbers or strings in the JSON")
    if not isinstance(literal, list):
        return literal
    # As TensorFlow takes numbers of Python.
    usual = {"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype)
    fits = array.dtype.kind != "i" or (array == array.astype(usual)).all()
    return array.astype(usual) if fits else array


def read_array(path: str) -> Any:
    """Return the array in a file of numpy; `OSError` where it cannot be read or is no such file."""
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
    """Return the attributes in a JSON object, with tensors read from their files."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--attrs {text}: expected a JSON object: {error}") from None
    if not isinstance(given, dict):
        raise click.UsageError(f"--attrs {text}: expected a JSON object, such as {{}}")
    tensors = {attr.name for attr in definition.attrs if attr.kind == "tensor"}
    return {
        name: _value(value) if name in tensors and str(value).startswith("@") else value
        for name, value in given.items()
    }


def _output_files(words: Iterable[str], definition: OpDefinition) -> list[tuple[str | None, str]]:
    """Return the files for outputs, each with the name of its output, None for the next one.

    Each is one that could be written.
    """
    names = {arg.name for arg in definition.outputs}
    files: list[tuple[str | None, str]] = []
    for word in words:
        name, _, path = word.partition("=")
        files.append((name, path) if name.partition("[")[0] in names and path else (None, word))
    if len(files) > len(names) and not any(arg.is_list for arg in definition.outputs):
        raise click.UsageError(f"{definition.name} has {len(names)} outputs, not {len(files)}")
    for _, path in files:
        if path == STANDARD_OUTPUT:
            raise click.UsageError("name a file with --output; standard output has the summary")
        refuse_special(path)
    return files


def _write(
    arrays: dict[str, Any], files: Iterable[tuple[str | None, str]]
) -> tuple[dict[str, str], list[str]]:
    """Write arrays into files; return these by outputs' names, and those without an output."""
    import numpy as np  # noqa: PLC0415  (heavy, and an extra)

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

    def plain(value: Any) -> Any:  # as text where JSON has no such number
        item = value.item() if hasattr(value, "item") else value
        if isinstance(item, (bool, int)):
            return item
        number = item if isinstance(item, complex) else float(item)
        return number if isinstance(number, float) and math.isfinite(number) else str(number)

    first = [plain(each) for each in values.reshape(-1)[:_MOST_SHOWN]]
    if values.size <= _MOST_SHOWN or values.dtype.kind == "c":
        return {"first": first}
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"first": first, "not_finite": int(numbers.size - finite.size)}
    if finite.size:
        found |= {name: float(getattr(finite, name)()) for name in ("min", "max", "mean")}
    return found


def _summary_text(summary: dict[str, Any]) -> str:
    def short(value: Any) -> str:
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    facts = [f"{n} {short(summary[n])}" for n in ("min", "max", "mean") if n in summary]
    if summary.get("not_finite"):
        facts.append(f"{summary['not_finite']} not finite")
    return ", ".join(facts or map(short, summary["first"]))
