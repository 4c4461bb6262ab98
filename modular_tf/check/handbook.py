"""The documentation of all checks, made of the table that the checks themselves use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.rule_pages import rule_entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.check import Check

_TITLES = {
    "library": "Checks of the libraries of plugins of every kind",
    "filesystem": "Checks of filesystem plugins",
    "device": "Checks of device plugins",
    "kernel": "Checks of kernel plugins",
}
_LETTERS = {
    "filesystem": "Messages name paths by letters: F and G files, E an empty file, D an empty "
    "directory, N a directory with a file, X and Y names that do not exist, F/x a name below a "
    "file, X/y a name in a directory that does not exist.",
}
_MEANINGS = {
    Level.LOADS: "it loads: the library can be mapped, and its entry point called",
    Level.REGISTERS: "it registers: what the entry point leaves is what the header demands",
    Level.WORKS: "it works: each operation does what it is for, or fails with the right code",
    Level.ROBUST: "it is robust: errors, limits, threads, memory",
    Level.HARD: "it survives random sequences against a model, faults, load",
}


def page_names() -> dict[str, str]:
    """Return the file name of each page by the kind of plugin."""
    return {kind: f"{kind}.md" for kind in _TITLES}


def page(kind: str) -> str:
    """Return the page on the checks of a kind of plugin, as Markdown.

    Args:
        kind: `library`, `filesystem`, `device` or `kernel`.
    """
    checks = [check for check in all_checks().values() if check.kind == kind]
    lines = [
        f"# {_TITLES[kind]}",
        "",
        "Made by `scripts/write_check_pages` of the table that the checks use; do not edit it.",
        "",
        f"{len(checks)} checks. Their levels:",
        "",
        *(f"{level:d}. {_MEANINGS[level]}" for level in Level),
        "",
        *([_LETTERS[kind], ""] if kind in _LETTERS else ()),
        *_contents(checks),
    ]
    for group in _groups(checks):
        lines += ["", f"## {group}", ""]
        lines += _joined(check for check in checks if check.group == group)
    return "\n".join(lines) + "\n"


def _groups(checks: Sequence[Check]) -> list[str]:
    return list(dict.fromkeys(check.group for check in checks))


def _contents(checks: Sequence[Check]) -> Iterator[str]:
    yield "| group | checks | levels |"
    yield "|---|---|---|"
    for group in _groups(checks):
        levels = sorted({check.level for check in checks if check.group == group})
        number = sum(check.group == group for check in checks)
        shown = ", ".join(f"{level:d}" for level in levels)
        yield f"| [{group}](#{group.replace(' ', '-')}) | {number} | {shown} |"


def _joined(checks: Iterator[Check]) -> list[str]:
    lines: list[str] = []
    for check in checks:
        lines += ["", *_entry(check)] if lines else _entry(check)
    return lines


def _entry(check: Check) -> list[str]:
    rule = check.rule
    ways = " and ".join(sorted(reached.value for reached in check.ways))
    facts = [
        f"level {check.level:d}",
        rule.severity.demand,
        f"by {ways}",
        f"source: {rule.source}",
    ]
    if check.traits:
        facts.append(f"takes for granted: {', '.join(sorted(check.traits))}")
    if check.needs:
        facts.append(f"needs {', '.join(f'`{slot}`' for slot in check.needs)}")
    return rule_entry(rule, facts)
