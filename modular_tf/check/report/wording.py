"""What reports say of outcomes: one in words, and those that one fault of a plugin explains."""

from __future__ import annotations

import os
import re
import shutil
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, CONCLUSIVE, Pass, Verdict
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.processes.ending import sanitizer_report, signal_in_full
from modular_tf.rules import rule

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from modular_tf.check.check import Check
    from modular_tf.check.outcome import Incident, Outcome
    from modular_tf.rules import Rule

PATH_LETTERS = (
    "F and G are files, E is an empty file, D an empty directory, N a directory with a file, X and "
    "Y are names that do not exist, F/x is a name below a file, X/y a name in a directory that "
    "does not exist"
)
"""The letters by which checks of filesystems name paths."""

_CALLS_SHOWN = 16
_LINES_OF_OUTPUT = 6
_LINES_OF_SANITIZERS = 20
_OWN_FOLDERS = re.compile(
    r"(?:modular-tf-check/)?"
    # Digits are tried from their first one only: the time is linear, whatever a plugin has written.
    r"(?:(?<![0-9a-f])[0-9a-f]{12,}-[0-9]+/(?:[A-Z]{2}-[0-9]{3}-[0-9]+(?:/|(?=')))?)+"
)
_NUMBER_OF_HANDLE = re.compile(r"(?<=[a-z])[0-9]+\b")
_SOURCE_LINE = re.compile(r" at (.+:[0-9]+)$")
_OF_THE_HOST = re.compile(r"^modular_tf: .* \[LD-130\]$")  # the report has all that it says

_MEMORY = (
    "uses memory that it must not (through a NULL pointer, past the end of a block, or after "
    "that was freed); a build with -fsanitize=address says which"
)
_REASONS: Mapping[int, str] = {
    signal.SIGSEGV: _MEMORY,
    signal.SIGBUS: _MEMORY,
    signal.SIGFPE: "divides by zero, or overflows in a division",
    signal.SIGILL: "runs into a trap of the compiler (undefined behaviour), or uses an instruction "
    "that this processor lacks",
    signal.SIGTRAP: "runs into a trap of the compiler (undefined behaviour)",
    signal.SIGABRT: "ends the process: by an assertion, by an exception that nobody catches, or "
    "for a heap that was damaged before; return a status instead",
    signal.SIGSYS: "makes a system call that is not allowed here",
}
_OTHER_SIGNAL = "ends the process; return a status instead"


# -- what blocked checks --------------------------------------------------------------------------

NAME_A_ROOT = (
    ": name a place where files may be made and removed with --root URI, and its kind with "
    "--profile"
)
_ENDED = {*BAD, Verdict.KNOWN} - {Verdict.FAILED}  # the root itself may have been too much


def with_references(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes of a run whose blocked checks name the checks that found why.

    A root is asked for only where none has worked.
    """
    known = list(outcomes)
    found = {it.check_id for it in known if it.verdict in CONCLUSIVE - {Verdict.PASSED}}
    worked = {
        it.subject
        for it in known
        if it.reached is not Pass.LIBRARY and it.verdict in CONCLUSIVE - _ENDED
    }

    def of_run(outcome: Outcome) -> Outcome:
        see = tuple(it for it in outcome.see if it in found or it not in all_checks())
        wants_root = outcome.wants_root and outcome.subject not in worked
        return with_all_references(replace(outcome, see=see, wants_root=wants_root))

    return [of_run(outcome) for outcome in known]


def with_all_references(outcome: Outcome) -> Outcome:
    """Return an outcome whose message names all rules that are about what blocked it."""
    see = f": see {' and '.join(outcome.see)}" if outcome.see else ""
    root = NAME_A_ROOT if outcome.wants_root else ""
    return replace(outcome, message=f"{outcome.message}{see}{root}")


# -- one outcome ----------------------------------------------------------------------------------


def headline(outcome: Outcome) -> str:
    """Return what was found, in one line, without the check's name."""
    if outcome.verdict is Verdict.KNOWN:
        ended = "" if outcome.incident is None else f"; {_ending(outcome, outcome.incident)}"
        return without_own_folders(f"known deviation: {outcome.reason}{ended}")
    text = outcome.message or outcome.verdict.value
    if outcome.incident is not None:
        text = _ending(outcome, outcome.incident)
    return without_own_folders(text)


def _ending(outcome: Outcome, incident: Incident) -> str:
    place = f" in {incident.last_call}" if incident.last_call else ""
    if outcome.verdict is Verdict.HUNG:
        return f"did not return{place} within {outcome.seconds:.0f} s"
    report = sanitizer_report(incident.last_output)
    reported = "" if report is None else f": {report}"
    if outcome.verdict is Verdict.EXITED or incident.exit_status is not None:
        if incident.exit_status is None and outcome.message:
            return f"{outcome.message}{reported}"
        return f"ended the process with exit status {incident.exit_status}{place}{reported}"
    ended_by = "no signal" if incident.signal is None else signal_in_full(incident.signal)
    return f"crashed with {ended_by}{place}{reported}"


def rule_of(outcome: Outcome) -> Rule:
    """Return the rule that a finding is about: the check's, or the one on memory."""
    return rule(outcome.broken_rule or outcome.check_id)


def remedy(outcome: Outcome) -> str:
    """Return what to do: that of the rule, or what helps against a crash, a hang or an exit."""
    incident = outcome.incident
    if incident is None:
        return rule_of(outcome).remedy
    what = _function_of(incident.last_call) or "the plugin"
    if outcome.verdict is Verdict.HUNG:
        return (
            f"Find out what {what} waits for, or why it repeats; the frames say where it was. "
            "Where it is only slow: --patience 10."
        )
    if outcome.verdict is Verdict.EXITED:
        return f"Let {what} return a status: only the application may end its process."
    if sanitizer_report(incident.last_output) is not None:
        return f"Mend what the sanitizer reported, in {what} or before it."
    reason = _REASONS.get(incident.signal or 0, _OTHER_SIGNAL)
    return f"Mend {what}{_place_of(incident)}: it {reason}."


def _place_of(incident: Incident) -> str:
    if not incident.backtrace:
        return ""
    if place := _SOURCE_LINE.search(_own_frame(incident) or ""):
        return f" at {place[1]}"
    with_line = "built with -g it has a line"
    if shutil.which("addr2line") is None:
        with_line = "the package binutils, which is not installed, names functions and lines"
    return f", in the first frame ({with_line})"


def facts(outcome: Outcome, plugin: str = "") -> Iterator[tuple[str, Sequence[str]]]:
    """Yield names and lines: what the rule requires, what was found, the calls, what to do.

    Native frames are shown without the folder of `plugin`, a path.
    """
    incident = outcome.incident
    tried, stated = all_checks()[outcome.check_id].rule, rule_of(outcome)
    if incident is not None or stated is not tried:
        yield "tried", [f"{tried.requirement} [{tried.source}]"]
    if incident is None:
        yield "required", [f"{stated.requirement} [{stated.source}]"]
    if outcome.expected:
        yield "expected", [without_own_folders(outcome.expected)]
    if outcome.found:
        yield "found", [without_own_folders(outcome.found)]
    yield "calls", [without_own_folders(call) for call in _last_calls(outcome.calls)]
    if incident is not None:
        folder = f"{os.path.dirname(plugin)}/" if plugin else ""
        yield "frames", [frame.removeprefix(folder) for frame in incident.backtrace]
        yield "last output", _last_words(incident.last_output)
    yield "remedy", [remedy(outcome)]


def _last_calls(calls: Sequence[str]) -> Sequence[str]:
    """Return the last calls; `...` stands for those before them."""
    before = ["..."] if len(calls) > _CALLS_SHOWN else []
    return [*before, *calls[-_CALLS_SHOWN:]]


def _last_words(last_output: str) -> Sequence[str]:
    """Return the last lines that a process wrote; the first of a sanitizer's report."""
    report = sanitizer_report(last_output)
    if report is not None:
        return report.lines[:_LINES_OF_SANITIZERS]
    lines = [line for line in last_output.strip().splitlines() if not _OF_THE_HOST.match(line)]
    return lines[-_LINES_OF_OUTPUT:]


def details(outcome: Outcome) -> Iterator[str]:
    """Yield the facts of an outcome as lines of text."""
    for name, lines in facts(outcome):
        for number, line in enumerate(lines):
            label = "" if number else f"{name}:"
            yield f"{label:9} {line}"


def without_own_folders(text: str) -> str:
    """Return text whose URIs are shown without the folders that the kit makes for each check."""
    return _OWN_FOLDERS.sub("…/", text)


def places(outcomes: Iterable[Outcome]) -> str:
    """Return subjects with the ways in which they were reached: `ram:// raw and host`."""
    ways: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        ways.setdefault(outcome.subject or "the library", {})[outcome.reached.value] = None
    return ", ".join(
        subject if [*reached] == ["library"] else f"{subject} {' and '.join(reached)}"
        for subject, reached in ways.items()
    )


def facts_of_check(check: Check) -> Iterator[str]:
    """Yield how a check is tried: on which level, in which ways, and on which conditions."""
    yield f"level {check.level:d}"
    yield f"group {check.group}"
    yield f"by {' and '.join(sorted(way.value for way in check.ways))}"
    if check.needs:
        yield f"needs {', '.join(f'`{slot}`' for slot in check.needs)}"
    if check.traits:
        yield f"takes for granted: {', '.join(sorted(check.traits))}"
    if check.place:
        yield check.place


# -- outcomes of one cause ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cause:
    """Outcomes that have, as far as can be seen, one cause.

    Attributes:
        first: The outcome to report in full: of the lowest level, with the fewest calls before it.
        outcomes: All of them, in the order of the report.
    """

    first: Outcome
    outcomes: tuple[Outcome, ...]

    @property
    def check_ids(self) -> list[str]:
        """The checks: the first one's, then the others in the order of their ids."""
        first = self.first.check_id
        return [first, *sorted({outcome.check_id for outcome in self.outcomes} - {first})]

    @property
    def extent(self) -> str:
        """How many checks and outcomes it has."""
        counts = {"check": len(self.check_ids), "outcome": len(self.outcomes)}
        return ", ".join(f"1 {it}" if n == 1 else f"{n} {it}s" for it, n in counts.items())


def causes(outcomes: Iterable[Outcome], verdicts: Iterable[Verdict]) -> Iterator[Cause]:
    """Bring together what has one cause, verdict by verdict.

    How a plugin took its process down is one cause where function and frame are the same; so is
    what keeps checks from being tried. Anything else is one where the same check found the same,
    on several subjects and in both ways.
    """
    known = list(outcomes)
    for verdict in verdicts:
        together: dict[Hashable, list[Outcome]] = {}
        for outcome in known:
            if outcome.verdict is verdict:
                together.setdefault(_key(outcome), []).append(outcome)
        for found in together.values():
            yield Cause(min(found, key=_priority), tuple(found))


def _key(outcome: Outcome) -> Hashable:
    incident = outcome.incident
    found = _NUMBER_OF_HANDLE.sub("", headline(outcome))  # it is another one in each way
    if outcome.verdict is Verdict.BLOCKED:
        return found
    if incident is None or outcome.verdict is Verdict.KNOWN:
        return outcome.check_id, found
    function = _function_of(incident.last_call)
    frame = _own_frame(incident)
    if function is None and frame is None:
        return outcome.check_id, found
    if outcome.verdict is Verdict.HUNG:  # where a loop was when it was interrupted is chance
        return function, incident.signal
    return function, incident.signal, incident.exit_status, frame


def _priority(outcome: Outcome) -> tuple[int, int]:
    return int(all_checks()[outcome.check_id].level), len(outcome.calls)


def _function_of(call: str | None) -> str | None:
    """Return the function of a call that a report shows: `read` of `read(file1, n=4)`."""
    return None if call is None else call.partition("(")[0].partition(" ")[0]


def _own_frame(incident: Incident) -> str | None:
    """Return the innermost frame that is not the system's; any where all are; None for none."""
    own = [frame for frame in incident.backtrace if not is_of_system(frame.partition(" ")[0])]
    return next(iter((*own, *incident.backtrace)), None)
