"""Every rule that a check tries: those that the loader applies, and those of checks alone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from modular_tf.check.rules import device, filesystem, kernel
from modular_tf.rules import loader_rules

if TYPE_CHECKING:
    from modular_tf.rules import Rule


@cache
def all_rules() -> dict[str, Rule]:
    """Return the rules of the loader and of the checks by id, in the order of their ids."""
    found = (*loader_rules().values(), *filesystem.RULES, *device.RULES, *kernel.RULES)
    return {rule.id: rule for rule in sorted(found)}
