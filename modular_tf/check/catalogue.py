"""Every check that there is, by the id of its rule."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from modular_tf.check.check import Suite
from modular_tf.rules import loader_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.check import Check
    from modular_tf.rules import Rule

_MODULES: Mapping[str, str] = {
    "filesystem": "library registration every_call translation reading writing directories moving"
    " questions transactions load",
    "device": "registration creation memory copies streams robustness",
    "kernel": "registration computing",
}
"""The modules that have a `Suite`, or several, below the package of their kind, in the order in
which a report shows their checks."""


@cache
def all_checks() -> dict[str, Check]:
    """Return every check by id, filesystems first, in the order of a report."""
    table: dict[str, Check] = {}
    for kind, modules in _MODULES.items():
        for name in modules.split():
            module = import_module(f"modular_tf.check.{kind}.{name}")
            for suite in vars(module).values():
                for check in suite.checks if isinstance(suite, Suite) else ():
                    if check.id in table:
                        raise RuntimeError(f"check {check.id} stands twice")
                    table[check.id] = check
    return table


@cache
def all_rules() -> dict[str, Rule]:
    """Return the rules of the loader and of the checks by id, in the order of their ids."""
    of_checks = (check.rule for check in all_checks().values())
    return {rule.id: rule for rule in sorted({*loader_rules().values(), *of_checks})}
