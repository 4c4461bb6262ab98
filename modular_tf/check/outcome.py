"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Pass(Enum):
    """How the plugin was reached."""

    LIBRARY = "library"  # the file, and what its entry point leaves
    RAW = "raw"  # the plugin's own slots, called as a host calls them
    HOST = "host"  # through this package, with its defaults and answers


class Verdict(Enum):
    """The result of one check."""

    PASSED = "passed"
    FAILED = "failed"  # a requirement (severity error) is not met
    WARNED = "warned"  # a recommendation (severity warning) is not met
    NOTED = "noted"  # nothing is demanded; what was seen is worth knowing
    CRASHED = "crashed"  # a signal ended the process
    HUNG = "hung"  # it was not done in time
    EXITED = "exited"  # the plugin ended the process
    SKIPPED = "skipped"  # the plugin does not offer what it needs
    BLOCKED = "blocked"  # what it needs first did not work: see the checks of that
    KNOWN = "known"  # a deviation that the configuration names, with a reason


BAD = (Verdict.CRASHED, Verdict.EXITED, Verdict.FAILED, Verdict.HUNG)
"""The verdicts after which a plugin does not conform, in the order of a report."""

CONCLUSIVE = frozenset(set(Verdict) - {Verdict.SKIPPED, Verdict.BLOCKED})
"""The verdicts after which something was checked."""


@dataclass(frozen=True, slots=True)
class Incident:
    """How a check took its process down.

    Attributes:
        signal: Its number, None where none ended it.
        exit_status: The status that the plugin ended the process with, None where it did not.
        last_call: The slot that was called last, with its arguments.
        backtrace: The native frames, innermost first.
        last_output: The end of the text on the standard streams.
    """

    signal: int | None = None
    exit_status: int | None = None
    last_call: str | None = None
    backtrace: tuple[str, ...] = ()
    last_output: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check, tried on one subject in one way.

    Attributes:
        check_id: Id of the check, which is the id of its rule.
        subject: The scheme as a URI begins (`s3://`), the device (`GPU:0`), "" for the library.
        reached: How.
        verdict: Its result.
        message: What was found, in one sentence; empty where it passed.
        expected: What should have been found, empty where it passed.
        found: What was found instead, empty where it passed.
        calls: The calls to the plugin that led there, the last at the end; C-like, shortened.
        seconds: How long it took.
        incident: How it took its process down, None where it did not.
        reason: Why a known deviation is one, "" for other verdicts.
        broken_rule: The rule on memory that the plugin broke meanwhile, "" for none: the finding is
            then of that one, and not of the check.
        see: The rules that are about what blocked it.
        wants_root: Whether it may not be blocked below another root.
    """

    check_id: str
    subject: str
    reached: Pass
    verdict: Verdict
    message: str = ""
    expected: str = ""
    found: str = ""
    calls: tuple[str, ...] = ()
    seconds: float = 0.0
    incident: Incident | None = None
    reason: str = ""
    broken_rule: str = ""
    see: tuple[str, ...] = ()
    wants_root: bool = False

    @property
    def lost_call(self) -> str | None:
        """The call that ended its process, without arguments; None where none did."""
        if self.incident is None or self.incident.last_call is None:
            return None
        return self.incident.last_call.partition("(")[0]
