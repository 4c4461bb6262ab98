"""The page that lists all rules."""

from __future__ import annotations

import re
from pathlib import Path

from modular_tf.check.catalogue import all_checks
from modular_tf.rules import Rule, all_rules
from site_pages.markdown import table

_PAGES = Path(__file__).resolve().parents[2] / "docs" / "checks"
_ENTRY = re.compile(r"^### ([A-Z]{2}-\d{3})$", re.MULTILINE)
_HEAD = """\
# All rules

Every refusal, warning and check cites a rule. `FS` rules are about filesystem plugins, `SE` rules
about device plugins, `LD` rules about finding and loading. Ids are never reused. A rule of severity
`error` refuses the plugin or the registration, a `warning` does not, a `note` is worth knowing. The
links lead to what breaking the rule does, and where it comes from.
"""


def page() -> str:
    """Return the page that lists all rules, with links to their own entries."""
    rules = {check.rule.id: check.rule for check in all_checks().values()} | all_rules()
    entries = _entries()
    rows = [
        (_link(rule, entries), rule.severity.value, rule.requirement, rule.remedy)
        for _, rule in sorted(rules.items())
    ]
    headers = ("rule", "severity", "what must hold", "remedy")
    return f"{_HEAD}\n{table(headers, rows)}"


def _entries() -> dict[str, str]:
    """Return the page that has an entry of its own for a rule, by the rule's id."""
    return {
        rule_id: path.name
        for path in sorted(_PAGES.glob("*.md"))
        for rule_id in _ENTRY.findall(path.read_text(encoding="utf-8"))
    }


def _link(rule: Rule, entries: dict[str, str]) -> str:
    if rule.id not in entries:
        return rule.id
    return f"[{rule.id}](../checks/{entries[rule.id]}#{rule.id.lower()})"
