"""Checks of what loading a plugin does to the process that loads it.

They are asked of first contact, by which this host decides whether an application loads it at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, REGISTERS, Suite
from modular_tf.check.expectation import Blocked, Deviation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.library_stage import LibraryGround
    from modular_tf.check.offered import Offered

suite = Suite("library", "first-contact", level=REGISTERS, ways=LIBRARY, seconds=90)

_ENDS = ("LD-060", "LD-061")
"""What comes after one of them is not known."""

_CANNOT_TRY = "LD-063"
_RULES = (
    "LD-060",
    "LD-061",
    "LD-062",
    "LD-064",
    "LD-065",
    "LD-066",
    "LD-067",
    "LD-068",
    "LD-069",
    "LD-120",
    "LD-121",
    "LD-122",
)
_NAMED = re.compile(r"\((LD-\d{3})\)")


@suite.judge(*_RULES)
def _is_kept_by_loading(rule_id: str, plugin: LibraryGround) -> None:
    """Ask first contact."""
    broken = dict(_broken(plugin.first_contact()))
    if rule_id in broken:
        raise Deviation(broken[rule_id])
    hiding = [other for other in (*_ENDS, _CANNOT_TRY) if other in broken]
    if hiding:
        raise Blocked(f"loading it was not finished: see {hiding[0]}: {broken[hiding[0]]}")


def _broken(found: Offered) -> Iterator[tuple[str, str]]:
    """Yield the rules that were broken, with what was found; the gravest last."""
    for note in found.notes:
        if note.rule in _RULES:
            yield note.rule, note.message
    if found.incident is not None:
        violation = found.incident.violation
        for rule_id in (*_NAMED.findall(violation.message), violation.rule_id):
            yield rule_id, violation.message
