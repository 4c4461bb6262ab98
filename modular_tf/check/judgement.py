"""Trying one check, in this process, and saying what became of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.check.calls import once_each
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.memory_watch import (
    MEMORY_RULES,
    Breach,
    Depth,
    HeapWatch,
    note_damage,
    raise_harm_to_heap,
)
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.rules import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.check import Check
    from modular_tf.check.session import Session

_MOST_CALLS = 20

_VERDICTS: Mapping[Severity, Verdict] = {
    Severity.NOTE: Verdict.NOTED,
    Severity.WARNING: Verdict.WARNED,
    Severity.ERROR: Verdict.FAILED,
}
"""The mildest first."""


def tried(check: Check, stage: Session, *, subject: str, reached: Pass) -> Outcome:
    """Try a check.

    Args:
        check: The check.
        stage: What it is tried on.
        subject: What a report calls that.
        reached: In which way it is tried.

    Raises:
        Exception: Whatever the check raises that is no finding: a fault of the check's.
    """
    stage.calls.clear()
    begun = time.monotonic()
    verdict, message, expected, found = Verdict.PASSED, "", "", ""
    try:
        _run_watched(check, stage, reached)
    except Deviation as deviation:
        verdict = _verdict(check, deviation)
        message, expected, found = deviation.message, deviation.expected, deviation.found
    except Unsupported as unsupported:
        verdict, message = Verdict.SKIPPED, str(unsupported)
    except Blocked as blocked:
        verdict, message, found = Verdict.BLOCKED, str(blocked), blocked.found
    return Outcome(
        check_id=check.id,
        subject=subject,
        reached=reached,
        verdict=verdict,
        message=message,
        expected=expected,
        found=found,
        calls=tuple(once_each(stage.calls)[-_MOST_CALLS:]),
        seconds=time.monotonic() - begun,
    )


def _run_watched(check: Check, stage: Session, reached: Pass) -> None:
    try:
        _run(check, stage, reached)
    finally:  # whatever else is found: it may come of this
        _look_at_heap(check, reached)


def _look_at_heap(check: Check, reached: Pass) -> None:
    heap = HeapWatch()
    if reached is Pass.LIBRARY:  # each of these checks loads the library; one is about the heap
        heap.new_violation(Depth.ALL)
    else:
        raise_harm_to_heap(heap, "the check", MEMORY_RULES[check.kind], Depth.ALL)


def _run(check: Check, stage: Session, reached: Pass) -> None:
    # Through the host, defaults may stand in for what the plugin lacks.
    lacking = stage.lacks(check.needs) if reached is Pass.RAW else None
    if lacking is not None:
        raise Unsupported(f"the plugin has no {lacking}")
    with stage.workspace(check) as ground:
        check.run(ground)


def _verdict(check: Check, deviation: Deviation) -> Verdict:
    if isinstance(deviation, Breach):
        note_damage()
        return Verdict.FAILED
    by_rule = check.rule.severity
    severities = list(_VERDICTS)
    return _VERDICTS[min(by_rule, deviation.severity or by_rule, key=severities.index)]
