"""The finding of a plugin, from how its child process ended."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.first_contact.finding import MOST_NOTES, Finding, Incident, noted
from modular_tf.first_contact.journal import IN_ORDER, THREAD_END
from modular_tf.first_contact.limits import ACCEPTABLE
from modular_tf.first_contact.process_state import HAS_TRACER
from modular_tf.processes.ending import ChildEnding
from modular_tf.processes.plain_text import plain
from modular_tf.processes.report import MUTE_STATUS
from modular_tf.processes.sanitizer_report import sanitizer_report
from modular_tf.processes.signal_names import signal_in_full
from modular_tf.rules import Violation
from modular_tf.rules import first_contact as rules

if TYPE_CHECKING:
    from modular_tf.first_contact.child_entries import Outcome
    from modular_tf.first_contact.limits import Limits
    from modular_tf.rules import Rule

_MOST_PRINTED = 60
_MIB = 1 << 20
_NO_MEMORY = "std::bad_alloc"
_AT = "at first contact in a child process"
_LAST = "an exit handler or destructor"


@dataclass(slots=True)
class Ending(ChildEnding):
    """How the trial of a plugin ended; the fields are filled as they become known."""

    entered: str | None = None  # the last call that was begun
    is_open: bool = False  # the thread that opened it has ended, or was about to
    outcome: Outcome | None = None  # where all calls came back
    stops: bool = False  # whether the plugin stopped the processes that watch over it
    lost: str | None = None  # the standard streams that the plugin closed or replaced
    fault: str | None = None  # with which the host's own code failed
    scarce: bool = False  # whether that was as a resource of the machine was used up
    memory: int = 0  # the most bytes that were seen, beyond the host's own
    exceeded_in: str | None = None  # the call in which that exceeded the limit
    processes: int = 0  # descendants, at the end or when they exceeded the limit
    printed: str = ""  # the beginning of what was written to standard output
    killed_for: Rule | None = None  # by the watcher


def finding_of(ending: Ending, limits: Limits) -> Finding:
    """Return what was found of a plugin whose process ended so."""
    if _failed(ending) and (ending.entered is None or ending.scarce):
        return cannot_try(f"the child process failed: {ending.fault}")
    if ending.entered is None and ending.outcome is None:
        how = "hung" if ending.killed_for else ending.in_words()
        return cannot_try(f"the child process {how} before it began{_said(ending)}")
    violations = _violations(ending, limits)
    # A plugin whose calls did not all return has ended the process, or was killed for a violation.
    accepted = frozenset() if ending.outcome is None else limits.accept & ACCEPTABLE
    refused = [each for each in violations if each.rule not in accepted and each.is_error]
    found = Finding() if ending.outcome is None else ending.outcome.finding
    tolerated = [_as_note(each) for each in violations if each not in refused][:MOST_NOTES]
    notes = (*found.notes[: MOST_NOTES - len(tolerated)], *tolerated)
    return found._replace(incident=_incident(ending, refused) if refused else None, notes=notes)


def _failed(ending: Ending) -> bool:
    """Return whether the host's own code failed, and not because the plugin took the memory."""
    return ending.fault is not None and ending.exceeded_in is None


def cannot_try(why: str) -> Finding:
    """Return the finding of a plugin that could not be tried; that is not its fault."""
    return Finding(Incident.of(Violation(rules.CHILD_STARTABLE, f"not tried: {why}")))


def watcher_lost() -> Finding:
    """Return the finding of a plugin that was tried alone and ended its watcher."""
    message = f"ended the process that watched over it, {_AT}"
    return Finding(Incident.of(Violation(rules.PROCESS_SURVIVES, message)))


def _as_note(violation: Violation) -> Violation:
    if violation.rule == rules.OUTPUT_UNUSED:
        return noted(Violation(rules.OUTPUT_UNUSED, f"{violation.message}, {_AT}", "load"))
    is_own = violation.rule == rules.PROCESS_STATE_KEPT
    accepted = "" if is_own else f" ({violation.rule}, accepted)"
    message = f"{violation.message}, {_AT}{accepted}"
    return noted(Violation(rules.PROCESS_STATE_KEPT, message, "load"))


def _incident(ending: Ending, violations: list[Violation]) -> Incident:
    first, *others = violations
    also = "".join(f"; also {other.message} ({other.rule})" for other in others)
    # Where all calls returned, it is unknown which one broke the rule.
    is_of_end = first.rule == rules.ENDS_IN_ORDER
    call = _LAST if is_of_end else None if ending.outcome is not None else ending.entered
    if first.rule == rules.MEMORY_BOUNDED and ending.exceeded_in is not None:
        call = ending.exceeded_in
    where = f", {_AT}" if call is None or is_of_end else f" in {call}, {_AT}"
    is_cut_short = is_of_end or ending.outcome is None
    words = _said(ending) if is_cut_short else ""
    if is_cut_short and ending.is_open and call not in {THREAD_END, _LAST}:
        words = f"; the thread that opened the plugin had ended before{words}"
    own_end = is_cut_short and ending.killed_for is None
    return Incident.of(
        Violation(first.rule, f"{first.message}{where}{also}{words}"),
        signal=ending.fatal_signal if own_end else None,
        last_call=call,
        backtrace=ending.backtrace,
        said=ending.said,
    )


def _violations(ending: Ending, limits: Limits) -> list[Violation]:
    """Return all violations of the trial, in the order of their rules."""
    violations = list(_ends(ending, limits))
    if ending.outcome is not None:
        changes = ending.outcome.changes
        violations += [Violation(change.rule, change.message) for change in changes]
    if ending.memory > limits.memory_mib * _MIB and all(
        found.rule != rules.MEMORY_BOUNDED for found in violations
    ):
        violations.append(Violation(rules.MEMORY_BOUNDED, _memory(ending, limits)))
    if ending.processes and all(found.rule != rules.NO_PROCESSES_LEFT for found in violations):
        violations.append(Violation(rules.NO_PROCESSES_LEFT, f"left {_processes(ending)} behind"))
    if ending.printed:
        violations.append(
            Violation(rules.OUTPUT_UNUSED, f"wrote to standard output: {_shown(ending.printed)}")
        )
    return sorted(violations, key=lambda found: found.rule_id)


def _ends(ending: Ending, limits: Limits) -> list[Violation]:
    """Return the violation that ended the trial early, none where the process ended in order."""
    if ending.outcome is not None and ending.killed_for is None:
        if ending.status == IN_ORDER:
            return []
        return [Violation(rules.ENDS_IN_ORDER, f"{ending.in_words()} in {_LAST}")]
    if ending.killed_for is not None or ending.fault is not None:
        return [_killing(ending, limits)]
    if ending.lost is not None:
        return [Violation(rules.DESCRIPTORS_KEPT, f"closed or replaced {ending.lost}")]
    if ending.status == MUTE_STATUS:
        return [
            Violation(
                rules.DESCRIPTORS_KEPT, "closed or shut down a descriptor that it had not opened"
            )
        ]
    if ending.errno == errno.ENOMEM or _NO_MEMORY in ending.said:
        how = f"asked for more memory than can be had, and {ending.in_words()}"
        return [Violation(rules.MEMORY_BOUNDED, how)]
    stopped = "stopped the processes that watched over it"
    return [Violation(rules.PROCESS_SURVIVES, stopped if ending.stops else ending.in_words())]


def _killing(ending: Ending, limits: Limits) -> Violation:
    """Return why the watcher killed the child, or why the host's own code failed in it."""
    if _failed(ending):
        return Violation(rules.PROCESS_USABLE, f"left the process unable to go on ({ending.fault})")
    if ending.killed_for == rules.MEMORY_BOUNDED or ending.fault is not None:
        return Violation(rules.MEMORY_BOUNDED, _memory(ending, limits))
    if ending.killed_for == rules.NO_PROCESSES_LEFT:
        return Violation(
            rules.NO_PROCESSES_LEFT, f"started {_processes(ending)} ({limits.processes} may run)"
        )
    how = f"did not return within {limits.seconds:g} s"
    if ending.has_tracer:
        return Violation(rules.RIGHTS_KEPT, HAS_TRACER)
    if ending.stopped_by is not None:
        how = f"was stopped by {signal_in_full(ending.stopped_by)}"
    if ending.outcome is not None:
        return Violation(rules.ENDS_IN_ORDER, f"{how} in {_LAST}")
    return Violation(rules.CALLS_RETURN, how)


def _memory(ending: Ending, limits: Limits) -> str:
    taken = -(-ending.memory // _MIB)
    return f"took {taken} MiB of memory ({limits.memory_mib} MiB are allowed)"


def _processes(ending: Ending) -> str:
    return "a process" if ending.processes == 1 else f"{ending.processes} processes"


def _said(ending: Ending) -> str:
    """Return the last output; there the C++ runtime names an exception that was not caught."""
    report = sanitizer_report(ending.said)
    if report is not None:
        return f"; {plain(str(report))}"
    lines = [line.strip() for line in ending.said.splitlines() if line.strip()]
    shown = plain(" / ".join(lines[-2:]))
    return f"; it last wrote: {shown}" if shown else ""


def _shown(text: str) -> str:
    words = " / ".join(line.strip() for line in text.splitlines() if line.strip())
    return repr(plain(words, most=_MOST_PRINTED))
