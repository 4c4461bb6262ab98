"""List the operations that plugins compute, or show one: what it takes and gives, and who does it.

Without a name, those that have kernels, under their own name or another one, and those that plugins
define.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence

    from modular_tf.cli.printer import Printer
    from modular_tf.device.device import Device
    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.service.service import PluginService

_HEADERS = ("op", "kernels", "device types", "plugins", "computed by", "defined by")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="show this operation in full")
    parser.add_argument(
        "--all", action="store_true", help="also list operations that no kernel computes"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf ops` and return its exit status."""
    with session(options) as service:
        if options.name is not None:
            _show_one(_Operation.of(service, options.name), printer)
            return Exit.DONE
        ops = list(_listed(service.kernel_registry, with_all=options.all))
    if printer.json:
        printer.json_object(ops=ops)
    else:
        printer.table(_HEADERS, map(_row, ops))
    if not ops:
        report_error("no plugin brings kernels; `modular-tf ops --all` lists what is defined")
    return Exit.DONE if ops else Exit.NOTHING


# -- all of them ----------------------------------------------------------------------------------


def _listed(registry: KernelRegistry, *, with_all: bool) -> Iterator[dict[str, Any]]:
    from modular_tf.kernel.aliases import aliases_of  # noqa: PLC0415  (help needs none of it)

    own = {kernel.op for kernel in registry.kernels()}
    of_plugins = own | {definition.name for definition in registry.plugin_definitions()}
    for name in sorted({*registry.op_names(), *own}):
        aliases = [alias.own for alias in aliases_of(name) if alias.own in own]
        if with_all or aliases or name in of_plugins:
            yield _summary(registry, name, aliases)


def _summary(registry: KernelRegistry, name: str, aliases: list[str]) -> dict[str, Any]:
    kernels = [kernel for op in (name, *aliases) for kernel in registry.kernels_of(op)]
    definition = registry.find_definition(name)
    return {
        "name": name,
        "kernels": len(kernels),
        "device_types": list(dict.fromkeys(kernel.device_type for kernel in kernels)),
        "plugins": list(dict.fromkeys(kernel.plugin for kernel in kernels)),
        "aliases": aliases,
        "source": None if definition is None else definition.source,
    }


def _row(op: dict[str, Any]) -> tuple[object, ...]:
    types, plugins, aliases = (", ".join(op[key]) for key in ("device_types", "plugins", "aliases"))
    return op["name"], op["kernels"], types, plugins, aliases, op["source"] or "nobody"


# -- one of them ----------------------------------------------------------------------------------


class _Operation(NamedTuple):
    """What is known of one operation.

    Attributes:
        definition: Its interface.
        aliases: The operations of plugins with kernels that compute it.
        computes: The standard operations that it computes under its own name.
        kernels: Its own, and those of its aliases.
        devices: The visible devices that each type of the kernels stands for.
    """

    definition: OpDefinition
    aliases: tuple[str, ...]
    computes: tuple[str, ...]
    kernels: tuple[KernelRegistration, ...]
    devices: dict[str, list[str]]

    @classmethod
    def of(cls, service: PluginService, name: str) -> _Operation:
        """Return what is known of the operation of a name.

        Raises:
            NotFoundError: Nobody defines it; the message names similar ones.
        """
        from modular_tf.kernel.aliases import aliases_of, computed_by  # noqa: PLC0415

        definition = service.op_definitions(name)[0]
        aliases = tuple(alias.own for alias in aliases_of(name) if service.kernels(alias.own))
        kernels = tuple(each for op in (name, *aliases) for each in service.kernels(op))
        visible = service.devices()
        devices = {kernel.device_type: _served(kernel.device_type, visible) for kernel in kernels}
        return cls(definition, aliases, computed_by(name), kernels, devices)


def _served(device_type: str, devices: Sequence[Device]) -> list[str]:
    """Return the names of the devices that kernels of a type serve."""
    from modular_tf.kernel.selection import device_types_of  # noqa: PLC0415

    return [
        device.name
        for device in devices
        if device_type in device_types_of(device.device_type, is_pluggable=not device.is_host)
    ]


def _show_one(op: _Operation, printer: Printer) -> None:
    from modular_tf.cli.kernels.described import definition_as_dict, kernel_as_dict  # noqa: PLC0415

    kernels = [
        {**kernel_as_dict(each), "devices": op.devices[each.device_type]} for each in op.kernels
    ]
    if printer.json:
        told = {"aliases": list(op.aliases), "computes": list(op.computes), "kernels": kernels}
        printer.json_object(op=definition_as_dict(op.definition) | told)
        return
    definition = op.definition
    printer.line(f"{definition.name}{definition.signature}")
    printer.facts(
        {
            "defined by": definition.source,
            "properties": ", ".join(_properties(definition)),
            "computed by": ", ".join(op.aliases),
            "computes": ", ".join(op.computes),
        }
    )
    _table(("argument", "is", "type"), _arguments(definition), printer)
    headers = ("attribute", "type", "default", "given by")
    _table(headers, (_attr_row(attr, definition) for attr in definition.attrs), printer)
    _show_kernels(kernels, printer)


def _table(headers: Sequence[str], rows: Iterator[tuple[object, ...]], printer: Printer) -> None:
    found = list(rows)
    if found:
        printer.line()
        printer.table(headers, found)


def _properties(definition: OpDefinition) -> Iterator[str]:
    for name in ("stateful", "commutative", "aggregate", "deprecated"):
        if getattr(definition, f"is_{name}"):
            yield name
    if definition.allows_uninitialized_input:
        yield "allows uninitialized input"


def _arguments(definition: OpDefinition) -> Iterator[tuple[object, ...]]:
    for what, args in (("input", definition.inputs), ("output", definition.outputs)):
        yield from ((arg.name, what, _arg_type(arg)) for arg in args)


def _arg_type(arg: ArgDefinition) -> str:
    return f"{arg.type_text} (a list)" if arg.is_list else arg.type_text


def _attr_row(attr: AttrDefinition, definition: OpDefinition) -> tuple[object, ...]:
    from modular_tf.cli.kernels.described import as_json  # noqa: PLC0415

    given = [arg.name for arg in definition.inputs if attr.name in arg.attrs]
    default = as_json(attr.default) if attr.has_default else ""
    return attr.name, attr.type_text, default, ", ".join(given)


def _show_kernels(kernels: Sequence[dict[str, Any]], printer: Printer) -> None:
    from modular_tf.cli.kernels.described import KERNEL_HEADERS, kernel_row  # noqa: PLC0415

    printer.line()
    if not kernels:
        printer.line("no plugin has a kernel of it")
        return
    rows = ((*kernel_row(each), ", ".join(each["devices"])) for each in kernels)
    printer.table((*KERNEL_HEADERS, "devices"), rows)
