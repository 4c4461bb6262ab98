"""`modular-tf inspect`: what is in a plugin's file and, once it is loaded, in its tables."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click

from modular_tf.abi.layouts import FILESYSTEM_OPS
from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.plugins import plugin_object, reason_line
from modular_tf.cli.process import Exit
from modular_tf.cli.values import PLUGIN
from modular_tf.discovery.linking.symbol_families import family_of, readable_name
from modular_tf.filesystem.filesystem import Filesystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.abi.layouts import Layout
    from modular_tf.discovery.probe import Probe
    from modular_tf.service.plugin import PluginEntry

HOST_DEFAULTS = frozenset(
    slot.name
    for slot in FILESYSTEM_OPS.slots
    if (method := getattr(Filesystem, slot.name, None)) is not None
    and "_unimplemented" not in method.__code__.co_names
)
"""The operations that the host does itself where a filesystem leaves them out."""

_SHOWN_SYMBOLS = 12


@command()
@argument("wanted", type=PLUGIN, help="a name from `list`, or a path")
@click.option("--no-load", is_flag=True, help="only search; run no plugin's code")
def inspect(call: Invocation, *, wanted: str, no_load: bool) -> Exit:
    """Show what is in a plugin: what its bytes say, and what its loaded tables and kernels are."""
    with call.session(load=False) as service:
        entry = service.entry(wanted)
        if not no_load:
            service.load(entry.plugin.name)
        record = entry.plugin.record()
        description = {
            **plugin_object(record),
            "probe": _facts(entry.probe),
            "tables": list(_tables(entry)),
            "registered_kernels": [],
            "op_definitions": [],
        }
        if entry.library is not None and (record.kernels or record.ops):
            from modular_tf.cli.kernels import definition_as_dict, kernel_as_dict  # noqa: PLC0415  (few have any)

            definitions = service.kernel_registry.plugin_definitions(record.name)
            kernels = service.kernels(plugin=record.name)
            description |= {
                "registered_kernels": list(map(kernel_as_dict, kernels)),
                "op_definitions": list(map(definition_as_dict, definitions)),
            }
    call.show_object({"plugin": description}, lambda: _show(description, call))
    return Exit.DONE


def _facts(probe: Probe) -> dict[str, Any]:
    """Return what the bytes of a plugin say; undefined symbols by who could define them."""
    candidate, elf = probe.candidate, probe.elf
    undefined: dict[str, list[str]] = {}
    for symbol in sorted(elf.undefined if elf else ()):
        undefined.setdefault(family_of(symbol).name.lower(), []).append(symbol.name)
    fields = (
        *("machine", "bits", "byte_order", "size", "soname", "needed", "rpath", "runpath"),
        *("init_symbols", "glibc_floor", "binds_now", "runs_code_on_load"),
    )
    return {
        "real_path": candidate.real_path,
        "origin": candidate.origin,
        "distribution": candidate.distribution,
        "twins": [
            {"path": twin.path, "source": str(twin.source), "origin": twin.origin}
            for twin in candidate.twins
        ],
        "loadable": probe.loadable,
        "elf": None if elf is None else {name: getattr(elf, name) for name in fields},
        "libraries": [
            {"name": found.name, "path": found.path, "companion": found.is_companion}
            for found in probe.libraries
        ],
        "undefined": undefined,
        "missing_symbols": [
            {"name": lost.name, "readable": lost.readable, "needed_by": lost.needed_by}
            for lost in probe.missing_symbols
        ],
    }


def _tables(entry: PluginEntry) -> Iterator[dict[str, Any]]:
    """Yield the tables of functions of a loaded plugin, slot by slot."""
    if entry.library is None:
        return
    from modular_tf.native.library import address_owner  # noqa: PLC0415  (loads the native core)

    def described(
        layout: Layout, size: int, address_of: Callable[[str], int], **served: str
    ) -> dict[str, Any]:
        slots = []
        for field in layout.slots:
            address = address_of(field.name)
            owner = address_owner(address) if address else None
            has_default = layout.name == FILESYSTEM_OPS.name and field.name in HOST_DEFAULTS
            slots.append(
                {
                    "slot": field.name,
                    "offset": field.offset,
                    "is": "present" if address else "default" if has_default else "absent",
                    "symbol": owner.symbol if owner else None,
                    "symbol_offset": owner.offset if owner else None,
                    "library": owner.path if owner else None,
                }
            )
        dialect = layout.dialect.value if layout.dialect else None
        return {**served, "struct": layout.name, "size": size, "dialect": dialect, "slots": slots}

    for scheme in entry.tables.values():
        for table in scheme.tables.values():
            slots = defaultdict(int, table.slots)
            yield described(table.layout, table.size, slots.__getitem__, scheme=scheme.scheme)
    if (platform := entry.platform) is not None:
        for given in platform.tables.given:
            yield described(given.layout, given.size, given.value, platform=platform.platform)


def _show(plugin: dict[str, Any], call: Invocation) -> None:
    probe = plugin["probe"]
    elf = probe["elf"] or {}
    call.facts(
        {
            "name": plugin["name"],
            "path": plugin["path"],
            "state": plugin["state"],
            "kinds": plugin["kinds"],
            "schemes": [scheme or "(local paths)" for scheme in plugin["schemes"]],
            "device types": plugin["device_types"],
            "kernels": plugin["kernels"] or None,
            "operations": plugin["ops"] or None,
            "real path": probe["real_path"] if probe["real_path"] != plugin["path"] else None,
            "found by": probe["origin"],
            "distribution": probe["distribution"],
            "also at": [twin["path"] for twin in probe["twins"]],
            "machine": f"{elf['machine']}, {elf['bits']} bit" if elf else "unreadable",
            "soname": elf.get("soname"),
            "needs": elf.get("needed"),
            "needs glibc": elf.get("glibc_floor"),
            "entry points": elf.get("init_symbols"),
            "loaded with it": [found["path"] for found in probe["libraries"]],
            **{
                f"from {family.replace('_', ' ')}": _shortened(names)
                for family, names in probe["undefined"].items()
            },
            "missing": [lost["readable"] for lost in probe["missing_symbols"]],
        }
    )
    for heading in ("reasons", "warnings"):
        for reason in plugin[heading]:
            call.row((heading[:-1], reason_line(reason)))

    def other_library(slot: dict[str, Any]) -> str | None:
        return None if slot["library"] == plugin["path"] else slot["library"]

    columns = (
        "slot",
        "offset",
        "is",
        ("function", _function),
        ("of another library", other_library),
    )
    for table in plugin["tables"]:
        serves = table.get("platform") or f"{table.get('scheme')}://"
        struct = f"{table['struct']}, {table['size']} bytes ({table['dialect'] or 'any'})"
        call.lines(["", f"{serves} {struct}"])
        call.show("slots", table["slots"], columns)
    if plugin["registered_kernels"]:
        from modular_tf.cli.kernels import KERNEL_COLUMNS  # noqa: PLC0415  (few have any)

        call.line()
        call.show("kernels", plugin["registered_kernels"], KERNEL_COLUMNS[:-1])
    if plugin["op_definitions"]:
        call.line()
        call.show("operations", plugin["op_definitions"], [("operation", "signature")])


def _shortened(symbols: list[str]) -> str:
    """Return the first names and how many follow; `--json` has them all."""
    names = list(dict.fromkeys(map(readable_name, symbols)))
    more = len(names) - _SHOWN_SYMBOLS
    return ", ".join(names[:_SHOWN_SYMBOLS]) + (f" and {more} more" if more > 0 else "")


def _function(slot: dict[str, Any]) -> str:
    """Return symbol + offset, or library + offset where the function has no exported symbol."""
    if slot["library"] is None:
        return ""
    name, offset = slot["symbol"], slot["symbol_offset"]
    if name is None:
        return f"{os.path.basename(slot['library'])}+{offset:#x}"
    return f"{readable_name(name)}+{offset:#x}" if offset else readable_name(name)
