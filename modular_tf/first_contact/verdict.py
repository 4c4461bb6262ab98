"""The report of a trial, and the finding that follows from it and from how the child ended."""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from modular_tf.codec import at_most, between, decode, row
from modular_tf.first_contact.finding import ACCEPTABLE, MOST_NOTES, Finding, Incident, noted
from modular_tf.first_contact.process_state import HAS_TRACER, RULES_OF_CHANGES
from modular_tf.processes.descendants import MemoryUse
from modular_tf.processes.ending import (
    MOST_OF_A_CALL,
    MOST_OF_A_MESSAGE,
    MUTE_STATUS,
    ChildEnding,
    plain,
    sanitizer_report,
    signal_in_full,
)
from modular_tf.rules import Rule, Violation
from modular_tf.rules import first_contact as rules

if TYPE_CHECKING:
    from modular_tf.first_contact.finding import Limits

IN_ORDER = 118
"""The exit status of a child that finished, and whose exit handlers and destructors returned."""
THREAD_END = "the end of the thread that opened it"
"""What is entered when a plugin is open: from then on the main thread makes the calls."""

_MOST_PRINTED = 60
_MIB = 1 << 20
_NO_MEMORY = "std::bad_alloc"
_AT = "at first contact in a child process"
_LAST = "an exit handler or destructor"


_MOST_CHANGES = 64
_NOTHING = MemoryUse(0, 0, 0)
_Flag: Any = Annotated[int, between(0, 1)]


def _complete(finding: Finding) -> Finding:
    if finding.incident is not None or finding.offer is None:
        raise ValueError("expected an offer, and no incident")
    return finding


def _of_changes(rule: Rule) -> Rule:
    if rule not in RULES_OF_CHANGES:
        raise ValueError(f"expected one of {sorted(RULES_OF_CHANGES)}, found {rule}")
    return rule


@row
class Change(NamedTuple):
    """A change of the state of the process: the rule that it breaks, and how."""

    rule: Annotated[Rule, _of_changes]
    message: Annotated[str, partial(plain, most=MOST_OF_A_MESSAGE)]


class Outcome(NamedTuple):
    """The result of a trial in which all calls returned."""

    finding: Annotated[Finding, _complete]
    changes: Annotated[tuple[Change, ...], at_most(_MOST_CHANGES)]


@dataclass(slots=True)
class Ending(ChildEnding):
    """How the trial of a plugin ended; the fields are filled as they become known."""

    base: MemoryUse = _NOTHING  # the host's own
    most_memory: float = math.inf  # bytes beyond it that the plugin may take
    files: int = 0  # the most bytes of files that were seen mapped
    entered: str | None = None  # the last call that was begun
    is_open: bool = False  # the thread that opened it has ended, or was about to
    outcome: Outcome | None = None  # where all calls returned
    stops: bool = False  # whether the plugin stopped the processes that watch over it
    lost: str | None = None  # the standard streams that the plugin closed or replaced
    fault: str | None = None  # with which the host's own code failed
    scarce: bool = False  # whether that was as a resource of the machine was used up
    memory: int = 0  # the most bytes that were seen, beyond the host's own
    exceeded_in: str | None = None  # the call in which that exceeded the limit
    processes: int = 0  # descendants, at the end or when they exceeded the limit
    printed: str = ""  # the beginning of what was written to standard output
    killed_for: Rule | None = None  # by the watcher

    def take(self, entry: Any) -> bool:
        """Take an entry of the report (`child.Journal`), or of the native core.

        A plugin may have written it: see `ChildEnding.take`.
        """
        match sorted(decode(dict[str, Any], entry)):
            case ["enters", "memory"]:
                call = plain(decode(str, entry["enters"]), MOST_OF_A_CALL)
                self.note_use(decode(MemoryUse, entry["memory"]))  # of the call before
                self.entered = call
                self.is_open |= call == THREAD_END
            case ["finished", "memory"]:
                outcome = decode(Outcome, entry["finished"])
                self.note_use(decode(MemoryUse, entry["memory"]))
                self.outcome = outcome
            case ["stops"]:
                self.stops = decode(_Flag, entry["stops"] or None) == 1
            case ["lost"]:
                self.lost = plain(decode(str, entry["lost"]))
            case ["fault", "scarce"]:
                scarce = decode(_Flag, entry["scarce"]) == 1
                self.fault, self.scarce = plain(decode(str, entry["fault"])), scarce
            case _:
                return ChildEnding.take(self, entry)
        return True

    def note_use(self, used: MemoryUse) -> None:
        """Note the memory that a process of the trial was seen to have."""
        self.files = max(self.files, used.files)
        self.note_memory(used.beyond(self.base))

    def note_memory(self, size: int) -> None:
        """Note how many bytes a process was seen to have beyond the host's own."""
        self.memory = max(self.memory, size)
        if self.exceeded_in is None and self.memory > self.most_memory:
            self.exceeded_in = self.entered


def finding_of(ending: Ending, limits: Limits) -> Finding:
    """Return what was found of a plugin whose process ended so."""
    if _failed(ending) and (ending.entered is None or ending.scarce):
        return cannot_try(f"the child process failed: {ending.fault}")
    if ending.entered is None and ending.outcome is None:
        how = "hung" if ending.killed_for else ending.in_words()
        return cannot_try(f"the child process {how} before it began{_last_output(ending)}")
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
    own_end = is_cut_short and ending.killed_for is None
    words = _last_output(ending) if is_cut_short else ""
    if own_end and ending.is_open and call not in {THREAD_END, _LAST}:
        words = f"; the thread that opened the plugin had ended before{words}"
    return Incident.of(
        Violation(first.rule, f"{first.message}{where}{also}{words}"),
        signal=ending.fatal_signal if own_end else None,
        last_call=call,
        backtrace=ending.backtrace,
        last_output=ending.last_output,
    )


def _violations(ending: Ending, limits: Limits) -> list[Violation]:
    """Return all violations of the trial, in the order of their rules."""
    end = _end(ending, limits)
    found = {} if end is None else {end[0]: [end[1]]}
    for change in () if ending.outcome is None else ending.outcome.changes:
        found.setdefault(change.rule, []).append(change.message)
    if ending.memory > limits.memory_mib * _MIB:
        found.setdefault(rules.MEMORY_BOUNDED, [_memory(ending, limits)])
    if ending.processes:
        found.setdefault(rules.NO_PROCESSES_LEFT, [f"left {_processes(ending)} behind"])
    if ending.printed:
        lines = (line.strip() for line in ending.printed.splitlines())
        shown = plain(" / ".join(filter(None, lines)), most=_MOST_PRINTED)
        found[rules.OUTPUT_UNUSED] = [f"wrote to standard output: {shown!r}"]
    each = [Violation(rule, message) for rule, messages in found.items() for message in messages]
    return sorted(each, key=lambda violation: violation.rule_id)


def _end(ending: Ending, limits: Limits) -> tuple[Rule, str] | None:
    """Return why the trial ended early; None where the process ended in order."""
    at_end = f" in {_LAST}" if ending.outcome is not None else ""
    if ending.killed_for is None and (ending.fault is None or ending.outcome is not None):
        how = ending.in_words()
        if ending.outcome is not None:
            return None if ending.status == IN_ORDER else (rules.ENDS_IN_ORDER, f"{how}{at_end}")
        if ending.lost is not None:
            return rules.DESCRIPTORS_KEPT, f"closed or replaced {ending.lost}"
        if ending.status == MUTE_STATUS:
            message = "closed or shut down a descriptor that it had not opened"
            return rules.DESCRIPTORS_KEPT, message
        if ending.errno == errno.ENOMEM or _NO_MEMORY in ending.last_output:
            return rules.MEMORY_BOUNDED, f"asked for more memory than can be had, and {how}"
        stopped = "stopped the processes that watched over it"
        return rules.PROCESS_SURVIVES, stopped if ending.stops else how
    if _failed(ending):
        return rules.PROCESS_USABLE, f"left the process unable to go on ({ending.fault})"
    if ending.killed_for == rules.MEMORY_BOUNDED or ending.fault is not None:
        return rules.MEMORY_BOUNDED, _memory(ending, limits)
    if ending.killed_for == rules.NO_PROCESSES_LEFT:
        message = f"started {_processes(ending)} ({limits.processes} may run)"
        return rules.NO_PROCESSES_LEFT, message
    if ending.has_tracer:
        return rules.RIGHTS_KEPT, HAS_TRACER
    how = f"did not return within {limits.seconds:g} s"
    if ending.stopped_by is not None:
        how = f"was stopped by {signal_in_full(ending.stopped_by)}"
    return (rules.ENDS_IN_ORDER if at_end else rules.CALLS_RETURN), f"{how}{at_end}"


def _memory(ending: Ending, limits: Limits) -> str:
    taken = -(-ending.memory // _MIB)
    return f"took {taken} MiB of memory ({limits.memory_mib} MiB are allowed)"


def _processes(ending: Ending) -> str:
    return "a process" if ending.processes == 1 else f"{ending.processes} processes"


def _last_output(ending: Ending) -> str:
    """Return the last output; there the C++ runtime names an exception that was not caught."""
    report = sanitizer_report(ending.last_output)
    if report is not None:
        return f"; {plain(str(report))}"
    lines = [line.strip() for line in ending.last_output.splitlines() if line.strip()]
    shown = plain(" / ".join(lines[-2:]))
    return f"; it last wrote: {shown}" if shown else ""
