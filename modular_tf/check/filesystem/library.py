"""Checks of a plugin's file: what its bytes say, and what the dynamic linker makes of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, CheckList
from modular_tf.check.expectation import Blocked, Deviation, expect
from modular_tf.check.level import Level
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.linking.symbol_families import SymbolFamily, family_of, readable_name
from modular_tf.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.filesystem.library_stage import LibraryGround
    from modular_tf.discovery.probe import ElfFacts

CHECKS = CheckList("library", "library")

_FILE_RULES = (
    "LD-001", "LD-002", "LD-003", "LD-004", "LD-005", "LD-006", "LD-007", "LD-008", "LD-009",
    "LD-010", "LD-011", "LD-012",
)  # fmt: skip
"""Where one of them is broken, those behind it cannot be judged."""

_LINK_RULES = ("LD-013", "LD-014", "LD-015", "LD-016", "LD-017")
_ROWS = {
    **dict.fromkeys(("LD-002", "LD-003", "LD-004", "LD-005"), (1,)),
    **dict.fromkeys(_LINK_RULES, (2,)),
    **dict.fromkeys(("LD-010", "LD-011", "LD-012"), (4,)),
}
_API_PREFIXES = ("TF_", "TFE_", "TSL_")
_TENSORFLOW_NAMESPACES = ("tensorflow", "tsl")
_SHOWN = 5
_SLOW_S = 3


def _asks_the_probe(rule_id: str) -> Callable[[LibraryGround], None]:
    def check(ground: LibraryGround) -> None:
        if not os.path.lexists(ground.target.path):
            raise Blocked("there is no such file: see LD-001")
        problems = ground.probe.problems
        for problem in problems:
            if problem.is_error and _hides(problem.rule_id, rule_id):
                raise Blocked(f"this cannot be checked: see {problem.rule}")
        for problem in problems:
            if problem.rule == rule_id:
                raise Deviation(problem.message, expected=problem.remedy or "")

    return check


def _hides(broken: str, rule_id: str) -> bool:
    """Return whether the probe went no further than the broken rule."""
    if broken not in _FILE_RULES:
        return False
    return rule_id in _LINK_RULES or _FILE_RULES.index(broken) < _FILE_RULES.index(rule_id)


@CHECKS.check("LD-001", Level.LOADS, passes=LIBRARY, rows=(1,))
def is_there(ground: LibraryGround) -> None:
    """Look for it; a link that leads nowhere is there."""
    path = ground.target.path
    expect(os.path.lexists(path), f"{path} does not exist")


for _rule in (*_FILE_RULES[1:], *_LINK_RULES):
    CHECKS.check(_rule, Level.LOADS, passes=LIBRARY, rows=_ROWS.get(_rule, ()))(
        _asks_the_probe(_rule)
    )


@CHECKS.check("FS-103", Level.REGISTERS, kind="filesystem", passes=LIBRARY, rows=(3,))
def c_functions_only(ground: LibraryGround) -> None:
    """Look for C++ functions of TensorFlow among the imports."""
    facts = _require_facts(ground)
    inside = [
        readable
        for symbol in facts.undefined
        if family_of(symbol) is SymbolFamily.TENSORFLOW_CXX
        and (readable := readable_name(symbol.name)).partition("::")[0] in _TENSORFLOW_NAMESPACES
    ]
    found = f"{_some(inside)}; needed: {', '.join(facts.needed) or 'nothing'}"
    expect(
        not inside,
        f"{len(inside)} imported symbols are of TensorFlow's C++",
        expected="functions of the C API alone",
        found=found,
    )


@CHECKS.check("FS-104", Level.REGISTERS, kind="filesystem", passes=LIBRARY, rows=(4,))
def no_copy_of_the_interface(ground: LibraryGround) -> None:
    """Look for functions of the C API among the exports."""
    _require_facts(ground)
    with ElfFile(ground.target.path) as elf:
        exported = elf.exports()
    own = sorted(
        name for name in exported & host_exports().symbols if name.startswith(_API_PREFIXES)
    )
    expect(
        not own,
        f"{len(own)} functions of TensorFlow's C API are exported",
        expected="TF_InitPlugin alone",
        found=_some(own),
    )


@CHECKS.check("FS-131", Level.LOADS, kind="filesystem", passes=LIBRARY, rows=(31,))
def quiet_constructors(ground: LibraryGround) -> None:
    """Map it in a child process, and look at what that did."""
    ground.require_loadable()
    trial = ground.trial
    if not trial.mapped:
        raise Blocked("the library cannot be mapped: see LD-050")
    expect(not trial.words, "mapping the library prints", found=repr(trial.words))
    expect(not trial.threads, "mapping the library starts threads", found=str(trial.threads))
    expect(trial.seconds < _SLOW_S, "mapping the library is slow", found=f"{trial.seconds:.1f} s")


@CHECKS.check("LD-050", Level.LOADS, passes=LIBRARY, rows=(31,))
def can_be_mapped(ground: LibraryGround) -> None:
    """Map it, which runs its constructors."""
    ground.require_loadable()
    _passes_unless("LD-050", ground.map)


def _passes_unless(rule_id: str, act: Callable[[], object]) -> None:
    try:
        act()
    except PluginError as error:
        if error.rule != rule_id:
            raise Blocked(f"{error.message}: see {error.rule}") from error
        raise Deviation(error.message) from error


def _require_facts(ground: LibraryGround) -> ElfFacts:
    facts = ground.probe.elf
    if facts is None:
        raise Blocked("the file cannot be read as a library: see LD-001 to LD-009")
    return facts


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
