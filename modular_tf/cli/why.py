"""`modular-tf why`: the explanation of a name, or of a rule."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.frame import argument, command
from modular_tf.cli.session import session
from modular_tf.cli.words import EXPLAINED

if TYPE_CHECKING:
    from modular_tf.cli.printer import Printer
    from modular_tf.cli.words import GlobalOptions
    from modular_tf.service.why import Explanation

_RULE_ID = re.compile(r"(FS|KN|LD|SE)-\d+", re.IGNORECASE)


@command()
@argument(
    "name",
    type=EXPLAINED,
    help="a plugin, a file or directory, a scheme or URI (ram or ram://x), a device type or a"
    " device (GPU or GPU:0), an installed package, an operation (MatMul), or a rule (FS-013)",
)
def why(options: GlobalOptions, printer: Printer, *, name: str) -> Exit:
    """Explain a plugin, file, scheme, device, package, operation or rule.

    Of a name: why it serves, or does not. Of a rule (FS-013): what it requires, and what to do.
    """
    more: dict[str, Any] = {}
    if _RULE_ID.fullmatch(name) and not os.path.exists(name):
        explanation, more = _rule_page(name.upper())
    else:
        with session(options) as service:
            if os.path.isfile(name):
                service.load(name)
            explanation = service.why(name)
    if printer.json:
        printer.json_object(**explanation.as_dict(), **more)
    else:
        for line in explanation.lines:
            printer.line(line)
    return Exit.DONE if explanation.known else Exit.NO


def _rule_page(rule_id: str) -> tuple[Explanation, dict[str, Any]]:
    """Return what a rule requires, and the same for programs."""
    from modular_tf.rules import loader_rules  # noqa: PLC0415  (other names need none of it)
    from modular_tf.service.why import Explanation, Fact  # noqa: PLC0415

    subject, rules = f"rule {rule_id}", loader_rules()
    judges = "the host, whenever it finds, tries or loads a plugin"
    if rule_id not in rules:
        judges = f"`modular-tf check PLUGIN --only {rule_id}`"
        try:
            from modular_tf.check.rules import all_rules  # noqa: PLC0415

            rules = all_rules()
        except ModuleNotFoundError:  # the conformance kit is not installed
            judges = ""
    rule = rules.get(rule_id)
    if rule is None:
        close = get_close_matches(rule_id, rules, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"there are {len(rules)} rules"
        kit = "those of the conformance kit, which is not installed, are missing"
        text = f"there is no rule {rule_id}{'' if judges else f'; {kit}'}"
        missing = (Fact(subject, "absent", text), Fact(subject, "suggestion", hint))
        return Explanation(rule_id, known=False, facts=missing), {}
    page = {
        "id": rule.id,
        "requirement": rule.requirement,
        "severity": rule.severity.value,
        "consequence": rule.consequence,
        "remedy": rule.remedy,
        "source": rule.source,
    }
    demand = f"rule {rule.id} ({rule.severity.demand}): {rule.requirement}"
    facts = (
        Fact(subject, "state", demand),
        Fact(subject, "if not", rule.consequence),
        Fact(subject, "remedy", rule.remedy),
        Fact(subject, "source", rule.source),
        Fact(subject, "judged by", judges),
    )
    return Explanation(rule_id, known=True, facts=facts), {"rule": page}
