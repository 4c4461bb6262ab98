"""The documentation of all rules, made of the table that the host and the checks use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_rules
from modular_tf.rules import HOST_MODULES, loader_rules, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from modular_tf.rules import Rule

_TITLES = {
    "LD": "Rules of finding, trusting, trying and loading plugins",
    "FS": "Rules of registering filesystems",
    "SE": "Rules of registering devices",
    "KN": "Rules of registering and running kernels",
}
_PAGES = {"LD": "loading.md", "FS": "filesystem.md", "SE": "device.md", "KN": "kernel.md"}
_GENERATED = "Made by `scripts/write_check_pages` of the table that the code uses; do not edit it."


def rule_pages() -> dict[str, str]:
    """Return the pages below `docs/rules` as Markdown, by file name; `README.md` is the index.

    The index has all rules. Those that only checks judge by are explained in `docs/checks`.
    """
    pages = {_PAGES[prefix]: _page(prefix) for prefix in _PAGES}
    return {"README.md": _index(), **pages}


def rule_entry(rule: Rule, facts: Iterable[str]) -> list[str]:
    """Return the lines on one rule.

    Args:
        rule: The rule.
        facts: What is to be said of it besides its sentences.
    """
    return [
        f"### {rule.id}",
        "",
        rule.requirement,
        "",
        f"*{' · '.join(facts)}*",
        "",
        f"If not: {rule.consequence}",
        "",
        f"Remedy: {rule.remedy}",
    ]


def page_of(rule: Rule) -> str:
    """Return the page that explains a rule, from the folder of the index."""
    folder = "" if rule.id in loader_rules() else "../checks/"
    return folder + _PAGES[rule.id[:2]]


def _index() -> str:
    text = (
        f"{len(all_rules())} rules. The host judges by {len(loader_rules())} of them whenever it"
        " finds, tries or loads a plugin; `modular-tf check` judges by most of these and by all"
        " others. Messages, `modular-tf why` and reports cite a rule by its id, which is never"
        " used again for another one; `modular-tf why FS-013` prints one."
    )
    rows = (_row(rule) for rule in all_rules().values())
    header = ("| rule | demand | what must hold |", "|---|---|---|")
    return "\n".join(("# All rules", "", _GENERATED, "", text, "", *header, *rows)) + "\n"


def _row(rule: Rule) -> str:
    link = f"[{rule.id}]({page_of(rule)}#{rule.id.lower()})"
    return f"| {link} | {rule.severity.demand} | {rule.requirement} |"


def _page(prefix: str) -> str:
    lines = [f"# {_TITLES[prefix]}", "", _GENERATED, "All rules: [README.md](README.md)."]
    for module in HOST_MODULES:
        lines += _section(module, prefix)
    return "\n".join(lines) + "\n"


def _section(module: ModuleType, prefix: str) -> Iterator[str]:
    rules = [rule for rule in rules_of(module) if rule.id.startswith(prefix)]
    if rules:
        title = (module.__doc__ or "").partition("\n")[0].rstrip(".")
        yield from ("", f"## {title}")
    for rule in rules:
        yield from ("", *rule_entry(rule, (rule.severity.demand, f"source: {rule.source}")))
