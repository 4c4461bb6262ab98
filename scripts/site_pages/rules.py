"""The pages on rules and on checks, and the index of all rules."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks, all_rules
from modular_tf.check.level import Level
from modular_tf.check.report.wording import PATH_LETTERS, facts_of_check
from modular_tf.rules import HOST_MODULES, loader_rules, rules_of
from site_pages.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.rules import Rule

_HOST_PAGES = {
    "LD": ("loading", "Rules of finding, trusting, trying and loading plugins"),
    "FS": ("filesystem", "Rules of registering filesystems"),
    "SE": ("device", "Rules of registering devices"),
    "KN": ("kernel", "Rules of registering and running kernels"),
}
_CHECK_PAGES = {
    "library": "Checks of the libraries of plugins of every kind",
    "filesystem": "Checks of filesystem plugins",
    "device": "Checks of device plugins",
    "kernel": "Checks of kernel plugins",
}
_MEANINGS = {
    Level.LOADS: "it loads: the library can be mapped, and its entry point called",
    Level.REGISTERS: "it registers: what the entry point leaves is what the header demands",
    Level.WORKS: "it works: each operation does what it is for, or fails with the right code",
    Level.ROBUST: "it is robust: errors, limits, threads, memory",
    Level.HARD: "it survives random sequences against a model, faults, load",
}


def index() -> str:
    """Return the table of all rules, which the site adds to `docs/rules/README.md`."""
    text = (
        f"\n{len(all_rules())} rules. The host judges by {len(loader_rules())} of them;"
        f" {len(all_checks())} checks judge by most of these and by all others.\n"
    )
    rows = []
    for rule in all_rules().values():
        page = f"{_HOST_PAGES[rule.id[:2]][0]}.md"
        if rule.id not in loader_rules():
            page = f"../checks/{all_checks()[rule.id].kind}.md"
        link = f"[{rule.id}]({page}#{rule.id.lower()})"
        rows.append((link, rule.severity.demand, rule.requirement))
    return f"{text}\n{table(('rule', 'demand', 'what must hold'), rows)}"


def _host_page(prefix: str) -> str:
    """Return the page on the rules of the host whose ids have a prefix."""
    lines = [f"# {_HOST_PAGES[prefix][1]}", "", "All rules: [index](README.md)."]
    for module in HOST_MODULES:
        rules = [rule for rule in rules_of(module) if rule.id.startswith(prefix)]
        if rules:
            title = (module.__doc__ or "").partition("\n")[0].rstrip(".")
            lines += ["", f"## {title}"]
        for rule in rules:
            lines += _entry(rule, [f"source: {rule.source}"])
    return "\n".join(lines) + "\n"


def _check_page(kind: str) -> str:
    """Return the page on the checks of a kind of plugin."""
    checks = [check for check in all_checks().values() if check.kind == kind]
    groups = list(dict.fromkeys(check.group for check in checks))
    rows = []
    for group in groups:
        levels = [check.level for check in checks if check.group == group]
        shown = ", ".join(f"{level:d}" for level in sorted(set(levels)))
        rows.append((f"[{group}](#{group.replace(' ', '-')})", len(levels), shown))
    lines = [f"# {_CHECK_PAGES[kind]}", "", f"{len(checks)} checks. Their levels:", ""]
    lines += (f"{level:d}. {_MEANINGS[level]}" for level in Level)
    if kind == "filesystem":
        lines += ["", f"Messages name paths by letters: {PATH_LETTERS}."]
    lines += ["", table(("group", "checks", "levels"), rows)]
    for group in groups:
        lines += ["", f"## {group}"]
        for check in checks:
            if check.group == group:
                facts = [f"source: {check.rule.source}", *facts_of_check(check)]
                lines += _entry(check.rule, facts)
    return "\n".join(lines) + "\n"


def _entry(rule: Rule, facts: Iterable[str]) -> Iterator[str]:
    yield from ("", f"### {rule.id}", "", rule.requirement, "")
    yield f"*{' · '.join((rule.severity.demand, *facts))}*"
    yield from ("", f"If not: {rule.consequence}", "", f"Remedy: {rule.remedy}")


PAGES = {
    **{
        f"rules/{page}.md": partial(_host_page, prefix) for prefix, (page, _) in _HOST_PAGES.items()
    },
    **{f"checks/{kind}.md": partial(_check_page, kind) for kind in _CHECK_PAGES},
}
"""The function that writes each page."""
