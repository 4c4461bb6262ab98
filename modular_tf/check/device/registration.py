"""Checks of what a device plugin registers, as the loader judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.layouts import Dialect
from modular_tf.check.check import LIBRARY, LOADS, REGISTERS, Suite
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.loading.device_loader import RefusedDeviceTables

if TYPE_CHECKING:
    from modular_tf.check.device.library_stage import DeviceLibraryGround
    from modular_tf.loading.device_tables import DeviceTables

suite = Suite("device", "registration", ways=LIBRARY)

# In which order the loader looks: an error that stops it leaves what follows unjudged.
_STEPS = (
    ("SE-001",),
    ("SE-002",),
    ("SE-007", "SE-008", "SE-004"),
    ("SE-005", "SE-006", "SE-009", "SE-010"),
    ("SE-011", "SE-012", "SE-013", "SE-014", "SE-015", "SE-016"),
    ("SE-017", "SE-018", "SE-019", "SE-020", "SE-034", "SE-035", "SE-029", "SE-030", "SE-031"),
    ("SE-021", "SE-023"),
    ("SE-022", "SE-024", "SE-025", "SE-026", "SE-027", "SE-028", "SE-033", "SE-036"),
)
_STEP = {rule_id: number for number, step in enumerate(_STEPS) for rule_id in step}
_LAYOUT_UNKNOWN = ("SE-001", "SE-002", "SE-004", "SE-008")
_NO_FUNCTIONS = ("SE-018", "SE-019", "SE-021", "SE-023", "SE-029", "SE-034")
_STOPPING = frozenset((*_LAYOUT_UNKNOWN, *_NO_FUNCTIONS))
_OF_RFC = {
    **dict.fromkeys(("SE-034", "SE-035"), "the layout has no allocators of its own"),
    "SE-036": "the layout is not the RFC's",
}


@suite.judge(*sorted(_STEP.keys() - {"SE-001", "SE-002"}), level=REGISTERS)
@suite.judge("SE-001", "SE-002", level=LOADS)
def _judged(rule_id: str, plugin: DeviceLibraryGround) -> None:
    """Take the loader's word for whether a rule is kept."""
    verdict = plugin.verdict
    violations = (
        verdict.violations if isinstance(verdict, RefusedDeviceTables) else verdict.warnings
    )
    found = [one.message for one in violations if one.rule_id == rule_id]
    if found:
        raise Deviation("; ".join(found))
    if isinstance(verdict, RefusedDeviceTables):
        _require_judged(rule_id, verdict)
    else:
        _require_relevant(rule_id, verdict)


def _require_judged(rule_id: str, refused: RefusedDeviceTables) -> None:
    for violation in refused.violations:
        broken = violation.rule_id
        if broken in _STOPPING and _STEP[broken] < _STEP[rule_id]:
            raise Blocked(f"the plugin is refused before that: {violation.message} ({broken})")


def _require_relevant(rule_id: str, tables: DeviceTables) -> None:
    if rule_id in _OF_RFC and tables.dialect is not Dialect.DEVICE_RFC:
        raise Unsupported(_OF_RFC[rule_id])
