"""The page that lists all rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.rule_pages import page_of
from modular_tf.check.rules import all_rules
from site_pages.markdown import table

if TYPE_CHECKING:
    from modular_tf.rules import Rule

_HEAD = """\
# All rules

Every refusal, warning and check cites a rule. `FS` rules are about filesystem plugins, `SE` rules
about device plugins, `LD` rules about finding and loading. Ids are never reused. A rule of severity
`error` refuses the plugin or the registration, a `warning` does not, a `note` is worth knowing. The
links lead to what breaking the rule does, and where it comes from.
"""


def page() -> str:
    """Return the page that lists all rules, with links to their own entries."""
    rows = [
        (_link(rule), rule.severity.value, rule.requirement, rule.remedy)
        for rule in all_rules().values()
    ]
    headers = ("rule", "severity", "what must hold", "remedy")
    return f"{_HEAD}\n{table(headers, rows)}"


def _link(rule: Rule) -> str:
    return f"[{rule.id}](../rules/{page_of(rule)}#{rule.id.lower()})"
