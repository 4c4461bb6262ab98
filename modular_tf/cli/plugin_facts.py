"""The facts in a plugin's file, as `inspect` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modular_tf.discovery.elf_facts import ElfFacts
    from modular_tf.discovery.probe import Probe

_SHOWN_SYMBOLS = 12


def facts_of(probe: Probe) -> dict[str, Any]:
    """Return the probe of a plugin as JSON output has it."""
    candidate = probe.candidate
    return {
        "real_path": candidate.real_path,
        "origin": candidate.origin,
        "distribution": candidate.distribution,
        "twins": [
            {"path": twin.path, "source": str(twin.source), "origin": twin.origin}
            for twin in candidate.twins
        ],
        "loadable": probe.loadable,
        "elf": None if probe.elf is None else _elf(probe.elf),
        "libraries": [
            {"name": found.name, "path": found.path, "companion": found.is_companion}
            for found in probe.libraries
        ],
        "undefined": _undefined(probe),
        "missing_symbols": [
            {"name": lost.name, "readable": lost.readable, "needed_by": lost.needed_by}
            for lost in probe.missing_symbols
        ],
    }


def _elf(elf: ElfFacts) -> dict[str, Any]:
    return {
        "machine": elf.machine,
        "bits": elf.bits,
        "byte_order": elf.byte_order,
        "size": elf.size,
        "soname": elf.soname,
        "needed": list(elf.needed),
        "rpath": list(elf.rpath),
        "runpath": list(elf.runpath),
        "init_symbols": list(elf.init_symbols),
        "glibc_floor": elf.glibc_floor,
        "binds_now": elf.binds_now,
        "runs_code_on_load": elf.runs_code_on_load,
    }


def _undefined(probe: Probe) -> dict[str, list[str]]:
    """Return the undefined symbols, grouped by the kind of library that could define them."""
    from modular_tf.discovery.linking.symbol_families import family_of  # noqa: PLC0415  (only here)

    groups: dict[str, list[str]] = {}
    for symbol in sorted(probe.elf.undefined if probe.elf else ()):
        groups.setdefault(family_of(symbol).name.lower(), []).append(symbol.name)
    return groups


def lines_of(facts: dict[str, Any], path: str) -> dict[str, str]:
    """Return the facts as names and one-line values for people, who see the path beside them."""
    from modular_tf.discovery.linking.symbol_families import readable_name  # noqa: PLC0415  (only here)

    elf = facts["elf"] or {}
    missing = [lost["readable"] for lost in facts["missing_symbols"]]
    return {
        "real path": facts["real_path"] if facts["real_path"] != path else "",
        "found by": facts["origin"],
        "distribution": facts["distribution"] or "",
        "also at": ", ".join(twin["path"] for twin in facts["twins"]),
        "machine": f"{elf['machine']}, {elf['bits']} bit" if elf else "unreadable",
        "soname": elf.get("soname") or "",
        "needs": ", ".join(elf.get("needed", ())),
        "needs glibc": elf.get("glibc_floor") or "",
        "entry points": ", ".join(elf.get("init_symbols", ())),
        "loaded with it": ", ".join(found["path"] for found in facts["libraries"]),
        **{
            f"from {family.replace('_', ' ')}": _shortened(
                list(dict.fromkeys(map(readable_name, names)))
            )
            for family, names in facts["undefined"].items()
        },
        "missing": ", ".join(missing),
    }


def _shortened(names: list[str]) -> str:
    """Return the first names and how many follow; `--json` has them all."""
    more = len(names) - _SHOWN_SYMBOLS
    return ", ".join(names[:_SHOWN_SYMBOLS]) + (f" and {more} more" if more > 0 else "")
