"""What TensorFlow makes of a library that first contact has tried."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from modular_tf.rules.first_contact import CALLS_RETURN, PROCESS_SURVIVES
from modular_tf.tensorflow.installation import releases

if TYPE_CHECKING:
    from modular_tf.first_contact.finding import Finding

_BAD = frozenset(("fails", "aborts", "hangs", "ends in use"))


class Outcome(str, Enum):
    """What can come of a library in TensorFlow.

    Attributes:
        LOADS: TensorFlow maps it and calls its init functions, which succeed.
        IGNORED: It is not opened, or nothing of it is called.
        FAILS: An exception is raised.
        ABORTS: The process ends.
        HANGS: A call does not return.
        ENDS_IN_USE: It loads, and its first use ends the process.
        UNKNOWN: It could not be tried.
    """

    LOADS = "loads"
    IGNORED = "ignored"
    FAILS = "fails"
    ABORTS = "aborts"
    HANGS = "hangs"
    ENDS_IN_USE = "ends in use"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value

    @property
    def is_bad(self) -> bool:
        """Whether something fails."""
        return self.value in _BAD


def outcome_of(finding: Finding, otherwise: Outcome) -> tuple[Outcome, str]:
    """Return what TensorFlow makes of a library, and why.

    What our rules refuse and TensorFlow does not look at, as a changed signal handler, is no
    obstacle there.

    Args:
        finding: What the trial found.
        otherwise: The outcome where the trial found nothing that TensorFlow minds.
    """
    if (of_incident := _of_incident(finding)) is not None:
        return of_incident
    known = releases()
    for rules, outcome in (
        (known.aborting_rules, Outcome.ABORTS),
        (known.refusing_rules, Outcome.FAILS),
        (known.undecided_rules, Outcome.UNKNOWN),
    ):
        for note in finding.notes:
            if note.rule_id in rules:
                return outcome, note.message
    if layout := _unread_layout(finding):
        return Outcome.ABORTS, f"it has the layout {layout}, which TensorFlow reads no more"
    for note in finding.notes:
        if note.stage == "load" and note.is_error:
            return Outcome.UNKNOWN, f"it was not tried: {note.message}"
    return otherwise, ""


def _unread_layout(finding: Finding) -> str:
    """Return the layout of a device plugin's structs where TensorFlow takes it for another."""
    platform = None if finding.offer is None else finding.offer.platform
    if platform is None or platform.layout in releases().device_layouts:
        return ""
    return platform.layout


def _of_incident(finding: Finding) -> tuple[Outcome, str] | None:
    incident = finding.incident
    if incident is None:
        return None
    message = incident.violation.message
    if incident.untried:
        return Outcome.UNKNOWN, f"it was not tried: {message}"
    ended = incident.violation.rule_id
    if ended not in {PROCESS_SURVIVES.id, CALLS_RETURN.id}:
        return None
    if not _is_made_while_loading(incident.last_call):
        return Outcome.ENDS_IN_USE, message
    return Outcome.ABORTS if ended == PROCESS_SURVIVES.id else Outcome.HANGS, message


def _is_made_while_loading(call: str | None) -> bool:
    return call is not None and call.startswith(releases().calls_while_loading)
