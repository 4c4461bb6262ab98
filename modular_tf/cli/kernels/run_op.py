"""Compute an operation: arrays from files of numpy go in, and what comes out is shown or written.

An input is a .npy file, a number, or a list of numbers such as [1,0]: in the order of the
operation, or behind its name (axis=0). `modular-tf ops NAME` shows inputs and attributes.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence

    from modular_tf.cli.kernels.words import Word
    from modular_tf.cli.printer import Printer
    from modular_tf.device.arrays.array import DeviceArray
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.selection import KernelCandidate
    from modular_tf.service.service import PluginService

_HEADERS = ("output", "dtype", "shape", "device", "values", "file")
_CANDIDATE_HEADERS = ("selected", "reason")
_MOST_SHOWN = 6


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("op", metavar="OP", help="the operation, such as MatMul")
    parser.add_argument(
        "--input", "-i", metavar="[NAME=]VALUE", action="append", default=[],
        help="a .npy file or numbers for an input; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--attr", "-a", metavar="NAME=VALUE", action="append", default=[],
        help="an attribute, such as transpose_a=true or strides=1,2,2,1; may be repeated",
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
    from modular_tf.cli.kernels.words import WordError  # noqa: PLC0415  (help needs none of it)

    with session(options) as service:
        try:
            call = _Call.of(service, options)
        except WordError as error:
            report_error(str(error))
            return Exit.USAGE
        try:
            return call.explain(printer) if options.explain else call.run(printer)
        except TypeError as error:  # elements that no tensor has
            report_error(str(error))
            return Exit.NO


class _Call(NamedTuple):
    """One call of an operation.

    Attributes:
        op: The operation, on its device.
        inputs: In the order of the definition.
        attrs: By name.
        files: Where outputs go.
    """

    op: Op
    inputs: list[Any]
    attrs: dict[str, Any]
    files: list[Word]

    @classmethod
    def of(cls, service: PluginService, options: Namespace) -> _Call:
        """Return what the words of the command say.

        Raises:
            WordError: They do not fit the operation.
            NotFoundError: There is no such operation or device.
            OSError: A file cannot be read, or could not be written.
        """
        from modular_tf.cli.kernels import words  # noqa: PLC0415  (help needs none of it)

        definitions = list(_definitions(service, options.op))
        op = _op(service, options)
        attrs = words.attributes(options.attr, definitions)
        files = words.output_files(options.output, definitions[0])
        _refuse_special(files)
        return cls(op, words.inputs(options.input, definitions[0]), attrs, files)

    def explain(self, printer: Printer) -> Exit:
        """Show which kernel would serve, and why not the others."""
        from modular_tf.cli.kernels.described import KERNEL_HEADERS  # noqa: PLC0415  (as above)

        found = self.op.explain(*self.inputs, **self.attrs)
        candidates = [_candidate_as_dict(each) for each in found]
        if printer.json:
            printer.json_object(op=self.op.name, candidates=candidates)
        else:
            headers = (*_CANDIDATE_HEADERS, *KERNEL_HEADERS)
            printer.table(headers, map(_candidate_row, candidates))
        if not found:
            report_error(f"no plugin has a kernel of {self.op.name}")
            return Exit.NOTHING
        return Exit.DONE if any(each.is_selected for each in found) else Exit.NO

    def run(self, printer: Printer) -> Exit:
        """Compute it, write the outputs that have files, and show all."""
        outputs = _named(self.op.definition, self.op.run(self.inputs, self.attrs))
        for name, array in outputs:
            if not hasattr(array, "to_numpy"):
                raise TypeError(f"output {name!r} has strings, which only Python can be given")
        arrays = {name: array.to_numpy() for name, array in outputs}
        written = _write(arrays, self.files)
        told = [_told(name, array, arrays[name], written.get(name)) for name, array in outputs]
        if printer.json:
            printer.json_object(op=self.op.name, outputs=told)
        else:
            printer.table(_HEADERS, [_row(each) for each in told])
        return Exit.DONE


def _definitions(service: PluginService, name: str) -> Iterator[OpDefinition]:
    """Yield the definition of an operation, and those of operations that may compute it."""
    from modular_tf.kernel.aliases import aliases_of  # noqa: PLC0415  (help needs none of it)

    yield from service.op_definitions(name)
    for alias in aliases_of(name):
        own = service.kernel_registry.find_definition(alias.own)
        if own is not None:
            yield own


def _op(service: PluginService, options: Namespace) -> Op:
    if options.device is None:
        return service.op(options.op, options.label)
    return service.device(options.device).op(options.op, options.label)  # type: ignore[return-value]


# -- outputs --------------------------------------------------------------------------------------


def _refuse_special(files: Sequence[Word]) -> None:
    """Raise before anything runs if a file could not be written."""
    from modular_tf.service.kept.storage.output_file import refuse_special  # noqa: PLC0415

    for file in files:
        refuse_special(file.value)


def _named(definition: OpDefinition, result: Any) -> list[tuple[str, DeviceArray]]:
    """Return the arrays of a result with their names; those of a list with their numbers."""
    args = definition.outputs
    groups = result if len(args) > 1 else [result][: len(args)]
    found: list[tuple[str, DeviceArray]] = []
    for arg, group in zip(args, groups, strict=True):
        if arg.is_list:
            found += [(f"{arg.name}[{index}]", each) for index, each in enumerate(group)]
        else:
            found.append((arg.name, group))
    return found


def _write(arrays: dict[str, Any], files: Sequence[Word]) -> dict[str, str]:
    """Write arrays into their files, and return these by the names of the outputs.

    Raises:
        OSError: A file cannot be written.
    """
    from io import BytesIO  # noqa: PLC0415  (help needs none of it)

    import numpy as np  # noqa: PLC0415

    from modular_tf.service.kept.storage.output_file import write_output  # noqa: PLC0415

    named = {file.name for file in files}
    unnamed = iter([name for name in arrays if name.partition("[")[0] not in named])
    written = {}
    for file in files:
        name = next(unnamed, None) if file.name is None else file.name
        if name in arrays:
            content = BytesIO()
            np.save(content, arrays[name], allow_pickle=False)
            write_output(file.value, content.getvalue())
            written[name] = file.value
    return written


def _told(name: str, array: DeviceArray, values: Any, file: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": array.dtype,
        "shape": list(array.shape),
        "device": array.device.name,
        "summary": _summary(values),
        "file": file,
    }


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
        found |= {"min": float(finite.min()), "max": float(finite.max())}
        found["mean"] = float(finite.mean())
    return found


def _plain(value: Any) -> Any:
    """Return a number as JSON can have it; what JSON has no number for as text."""
    import math  # noqa: PLC0415  (help needs none of it)

    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, (bool, int)):
        return item
    number = item if isinstance(item, complex) else float(item)
    return number if isinstance(number, float) and math.isfinite(number) else str(number)


def _row(told: dict[str, Any]) -> tuple[object, ...]:
    shape = f"({', '.join(map(str, told['shape']))})"
    text = _summary_text(told["summary"])
    return told["name"], told["dtype"], shape, told["device"], text, told["file"]


def _summary_text(summary: dict[str, Any]) -> str:
    facts = [
        f"{name} {_short(summary[name])}" for name in ("min", "max", "mean") if name in summary
    ]
    if summary.get("not_finite"):
        facts.append(f"{summary['not_finite']} not finite")
    return ", ".join(facts or map(_short, summary["first"]))


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# -- candidates -----------------------------------------------------------------------------------


def _candidate_as_dict(candidate: KernelCandidate) -> dict[str, Any]:
    from modular_tf.cli.kernels.described import kernel_as_dict  # noqa: PLC0415

    judged = {"selected": candidate.is_selected, "reason": candidate.reason}
    return kernel_as_dict(candidate.registration) | judged


def _candidate_row(candidate: dict[str, Any]) -> tuple[object, ...]:
    from modular_tf.cli.kernels.described import kernel_row  # noqa: PLC0415

    selected = "yes" if candidate["selected"] else "no"
    return (selected, candidate["reason"], *kernel_row(candidate))
