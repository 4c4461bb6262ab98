"""Show what is in a plugin: what its bytes say and, once it is loaded, its tables and kernels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.list_plugins import reason_line
from modular_tf.cli.plugin_facts import facts_of, lines_of
from modular_tf.cli.session import session
from modular_tf.discovery.linking.symbol_families import readable_name

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.service import PluginService


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("plugin_wanted", metavar="PLUGIN", help="a name from `list`, or a path")
    parser.add_argument(
        "--no-load", dest="load", action="store_false", help="only look; run no plugin's code"
    )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf inspect` and return its exit status."""
    with session(options, load=False) as service:
        entry = service.entry(options.plugin_wanted)
        if options.load:
            service.load(entry.plugin.name)
        description = _described(entry) | _kernels(service, entry)
    if printer.json:
        printer.json_object(plugin=description)
    else:
        _show(description, printer)
    return Exit.DONE


def _described(entry: PluginEntry) -> dict[str, Any]:
    record = entry.plugin.record()
    return {
        **record.as_dict(),
        "reasons": [reason.as_dict() for reason in record.reasons],
        "warnings": [warning.as_dict() for warning in record.warnings],
        "probe": facts_of(entry.probe),
        "tables": _tables(entry),
    }


def _tables(entry: PluginEntry) -> list[dict[str, Any]]:
    if entry.library is None:
        return []
    from modular_tf.cli import plugin_tables  # noqa: PLC0415  (loads the native core)

    described = []
    for tables in entry.tables.values():
        described += plugin_tables.filesystem_tables(tables)
    if entry.platform is not None:
        described += plugin_tables.device_tables(entry.platform)
    return described


def _kernels(service: PluginService, entry: PluginEntry) -> dict[str, Any]:
    """Return the kernels and definitions of operations of a loaded plugin."""
    plugin = entry.plugin.record()
    if entry.library is None or not (plugin.kernels or plugin.ops):
        return {"registered_kernels": [], "op_definitions": []}
    from modular_tf.cli.kernels import described  # noqa: PLC0415  (few plugins bring kernels)

    definitions = service.kernel_registry.plugin_definitions(plugin.name)
    kernels = service.kernels(plugin=plugin.name)
    return {
        "registered_kernels": [described.kernel_as_dict(each) for each in kernels],
        "op_definitions": [described.definition_as_dict(each) for each in definitions],
    }


def _show(plugin: dict[str, Any], printer: Printer) -> None:
    printer.facts(
        {
            "name": plugin["name"],
            "path": plugin["path"],
            "state": plugin["state"],
            "kinds": ", ".join(plugin["kinds"]),
            "schemes": ", ".join(scheme or "(local paths)" for scheme in plugin["schemes"]),
            "device types": ", ".join(plugin["device_types"]),
            "kernels": plugin["kernels"] or "",
            "operations": plugin["ops"] or "",
            **lines_of(plugin["probe"], plugin["path"]),
        }
    )
    for heading in ("reasons", "warnings"):
        for reason in plugin[heading]:
            printer.row((heading[:-1], reason_line(reason)))
    for table in plugin["tables"]:
        _show_table(table, plugin["path"], printer)
    if plugin["registered_kernels"] or plugin["op_definitions"]:
        _show_kernels(plugin, printer)


def _show_table(table: dict[str, Any], plugin_path: str, printer: Printer) -> None:
    """Write the slots; the library of a function only where it is not the plugin's own."""
    serves = table.get("platform") or f"{table.get('scheme')}://"
    printer.line()
    printer.line(f"{serves} {table['struct']}, {table['size']} bytes ({table['dialect'] or 'any'})")
    rows = [
        (
            slot["slot"],
            slot["offset"],
            slot["is"],
            _function(slot),
            slot["library"] if slot["library"] != plugin_path else "",
        )
        for slot in table["slots"]
    ]
    printer.table(("slot", "offset", "is", "function", "of another library"), rows)


def _show_kernels(plugin: dict[str, Any], printer: Printer) -> None:
    """Write the kernels, and the signatures of the plugin's own operations."""
    from modular_tf.cli.kernels.described import KERNEL_HEADERS, kernel_row  # noqa: PLC0415

    if plugin["registered_kernels"]:
        printer.line()
        rows = (kernel_row(each)[:-1] for each in plugin["registered_kernels"])
        printer.table(KERNEL_HEADERS[:-1], rows)
    if plugin["op_definitions"]:
        printer.line()
        printer.table(("operation",), ((each["signature"],) for each in plugin["op_definitions"]))


def _function(slot: dict[str, Any]) -> str:
    """Return symbol + offset, or library + offset where the function has no exported symbol."""
    if slot["library"] is None:
        return ""
    name, offset = slot["symbol"], slot["symbol_offset"]
    if name is None:
        return f"{os.path.basename(slot['library'])}+{offset:#x}"
    return f"{readable_name(name)}+{offset:#x}" if offset else readable_name(name)
