"""Every rule that the loader applies, stated once for loader, checks, messages and docs.

A rule has an id (`FS-nnn` filesystem registration, `SE-nnn` device registration, `LD-nnn` probe and
loading), what it requires, what happens when it is broken, and what to do. `modular_tf.check.rules`
adds those that only `modular-tf check` tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Rule", "Severity", "Violation", "loader_rules", "rule", "rules_by_id"]


class Severity(Enum):
    """The effect of breaking a rule."""

    ERROR = "error"  # the plugin, or the one registration, is refused
    WARNING = "warning"  # it is accepted, and the report says so
    NOTE = "note"  # nothing is demanded; what a plugin does is worth knowing


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement on plugins.

    Attributes:
        id: `FS-nnn`, `SE-nnn` or `LD-nnn`; never reused, never renumbered.
        requirement: What must hold, in one sentence.
        consequence: What breaking it does, here and in TensorFlow.
        remedy: What the plugin's author or user should do.
        source: The C header, TensorFlow behaviour or design section it comes from.
        severity: Whether it refuses or warns.
    """

    id: str
    requirement: str
    consequence: str
    remedy: str
    source: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule, found in one plugin.

    Attributes:
        rule_id: Which rule.
        message: What was found, naming field, expected and found.
    """

    rule_id: str
    message: str

    @property
    def rule(self) -> Rule:
        """The rule that was broken."""
        return rule(self.rule_id)

    @property
    def is_error(self) -> bool:
        """Whether the rule refuses."""
        return self.rule.severity is Severity.ERROR


@cache
def loader_rules() -> dict[str, Rule]:
    """Return the rules that the loader judges by, by id; every process needs them."""
    from modular_tf.rules import (  # noqa: PLC0415  (they import Rule)
        deferral,
        device,
        device_listing,
        filesystem,
        first_contact,
        kept_state,
        loading,
        mapping,
        renewal,
        shortage,
        trust,
        user_places,
    )

    return rules_by_id(
        loading.RULES,
        mapping.RULES,
        first_contact.RULES,
        kept_state.RULES,
        trust.RULES,
        renewal.RULES,
        deferral.RULES,
        shortage.RULES,
        user_places.RULES,
        filesystem.RULES,
        device.RULES,
        device_listing.RULES,
    )


def rules_by_id(*groups: Iterable[Rule]) -> dict[str, Rule]:
    """Return rules by their ids.

    Raises:
        RuntimeError: Two have the same id.
    """
    table: dict[str, Rule] = {}
    for group in groups:
        for entry in group:
            if entry.id in table:
                raise RuntimeError(f"rule id {entry.id} is used twice")
            table[entry.id] = entry
    return table


def rule(rule_id: str) -> Rule:
    """Return the rule of the loader with this id.

    Raises:
        KeyError: There is no such rule.
    """
    return loader_rules()[rule_id]
