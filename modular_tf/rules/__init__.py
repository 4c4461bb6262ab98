"""Every rule that the loader applies, stated once for loader, checks, messages and docs.

A rule has an id (`FS-nnn` filesystem registration, `SE-nnn` device registration, `KN-nnn` kernels,
`LD-nnn` probe and loading), what it requires, what happens when it is broken, and what to do.
`modular_tf.check.catalogue` adds those that only `modular-tf check` tries.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from modular_tf.rules import (
    device,
    filesystem,
    first_contact,
    kernel,
    loading,
    shortage,
    trust,
)
from modular_tf.rules.violation import (
    Problem,
    Reason,
    Rule,
    Severity,
    Violation,
    rule,
    written_out,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "HOST_MODULES",
    "Problem",
    "Reason",
    "Rule",
    "Severity",
    "Violation",
    "loader_rules",
    "rule",
    "rules_of",
    "written_out",
]

HOST_MODULES = (
    loading,
    first_contact,
    trust,
    shortage,
    filesystem,
    device,
    kernel,
)
"""The modules that have the rules which the loader judges by."""


def rules_of(module: ModuleType) -> list[Rule]:
    """Return the rules that a module names, in its order."""
    return [value for value in vars(module).values() if isinstance(value, Rule)]


@cache
def loader_rules() -> dict[str, Rule]:
    """Return the rules that the loader judges by, by id."""
    return {found.id: found for module in HOST_MODULES for found in rules_of(module)}
