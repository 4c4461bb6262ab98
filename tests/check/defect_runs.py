"""Every check's defect, and what all checks of the same group come to with it.

A check *finds* a defect where what becomes of it is neither what became of it without the defect,
nor that it was not tried.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Dialect
from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, FIXTURES, defective_plugin, listed_defects
from tests.check.unfit_libraries import UNFIT, unfit_library
from tests.device.dialects.building import Build
from tests.fixtures.broken_libraries import LibraryBreaker
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from modular_tf.check.check import Check
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.run import CheckProcesses

_FOLDER = Path(__file__).parent
_SETTINGS = {
    "filesystem": {"FIXTURE_SCHEME": "fixture"},
    "device": {"FIXTURE_TYPE": "FIXTURE", "FIXTURE_PLATFORM": "FIXTURE_CHIP"},
}
_VARIANTS_OF = {"library": "filesystem"}
"""The fixture plugin whose variants stand for a kind that has none."""
_ABSENT = {"kernel": ("TF_DefectThatNoHostHas",)}
_SCHEMES = {"filesystem": "defect", "local_filesystem": "file"}
_QUICKLY = {
    "large_bytes": 1 << 16, "many": 40, "pressure_mib": 32, "programs": 60, "repeat": 64,
}  # fmt: skip
"""Options of all subjects: what a defect needs beyond them, `defects.toml` says."""

WHOLE = bool(os.environ.get("MODULAR_TF_WHOLE_DEFECT_TABLE"))
"""Whether all is tried that can be, which takes several times as long: scripts/test_matrices."""

_LOOKED_AT_CLOSELY = frozenset(list(all_checks())[::4])

_UNTRIED = frozenset({Verdict.SKIPPED, Verdict.BLOCKED})


@dataclass(frozen=True)
class Subject:
    """A plugin to try checks on.

    Attributes:
        fixture: The switchable plugin, or the variant or damage of another.
        path: Its library.
        scheme: What it serves as a filesystem.
        options: For the checks.
        environment: Variables of the process; they choose the defect.
    """

    fixture: str
    path: str
    scheme: str
    options: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def job(self, check: Check, reached: Pass, ids: Sequence[str]) -> Job:
        """Return the job of trying checks of the kind of one."""
        is_library = reached is Pass.LIBRARY
        of_filesystem = check.kind == "filesystem" and not is_library
        target = Target(
            path=self.path,
            kind=check.kind,
            reached=reached,
            scheme=self.scheme if of_filesystem else None,
            ordinal=0 if check.kind == "device" and not is_library else None,
            absent=_ABSENT.get(self.fixture, ()),
            options=Options(**{**_QUICKLY, **self.options}),
        )
        return Job(target, self.fixture, tuple(ids), self.environment)


def read_table(name: str) -> dict[str, Any]:
    """Return one of the TOML files beside this one."""
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))


@cache
def fixtures_by_check() -> dict[str, str]:
    """Return which switchable plugin has the defect of a check."""
    return {check_id: name for name in FIXTURES for check_id in listed_defects(name)}


@cache
def expected_finders(check_id: str) -> frozenset[str]:
    """Return which of the checks that are tried must find the defect of one."""
    if not (WHOLE or check_id in _LOOKED_AT_CLOSELY):
        return frozenset({check_id})
    return frozenset({check_id, *read_table("coupled_checks.toml").get(check_id, ())})


def checks_with_defects() -> list[str]:
    """Return the ids of all checks that a defect is known for."""
    table = read_table("defects.toml")
    known = {
        *fixtures_by_check(),
        *table["variants"],
        *table["damages"],
        *table["dialects"],
        *UNFIT,
    }
    return [check_id for check_id in all_checks() if check_id in known]


class Subjects:
    """Builds plugins with and without a defect.

    Args:
        folder: Where damaged files are written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._table = read_table("defects.toml")

    def defective(self, check: Check) -> Subject:
        """Return the plugin with the defect of a check."""
        options = self._table["options"].get(check.id, {})
        if check.id in self._table["variants"]:
            return self._variant(_variants_of(check), self._table["variants"][check.id], options)
        if check.id in self._table["damages"]:
            return self._damaged(check, self._table["damages"][check.id], options)
        if check.id in self._table["dialects"]:
            return self._dialect(self._table["dialects"][check.id], options)
        if check.id in UNFIT:
            return self._unfit(check, options)
        fixture = fixtures_by_check()[check.id]
        return self._switchable(fixture, options, {DEFECT_VARIABLE: check.id})

    def sound(self, check: Check) -> Subject:
        """Return the same without the defect."""
        options = self._table["options"].get(check.id, {})
        if check.id in self._table["dialects"]:
            return self._dialect({**self._table["dialects"][check.id], "macros": {}}, options)
        if check.id in {*self._table["variants"], *self._table["damages"], *UNFIT}:
            return self._variant(_variants_of(check), "good", options)
        return self._switchable(fixtures_by_check()[check.id], options, {})

    def _switchable(
        self, fixture: str, options: dict[str, Any], environment: dict[str, str]
    ) -> Subject:
        path = str(defective_plugin(fixture))
        return Subject(fixture, path, _SCHEMES.get(fixture, ""), options, environment)

    def _variant(self, kind: str, name: str, options: dict[str, Any]) -> Subject:
        path = str(build_plugin(variants(kind)[name], _SETTINGS[kind]))
        return Subject(name, path, "fixture", options)

    def _dialect(self, build: Mapping[str, Any], options: dict[str, Any]) -> Subject:
        path = str(Build(**{**build, "dialect": Dialect(build["dialect"])}).compile())
        return Subject("dialect", path, "", options)

    def _unfit(self, check: Check, options: dict[str, Any]) -> Subject:
        folder = self._folder / check.id
        folder.mkdir()
        return Subject("unfit", str(unfit_library(check.id, folder)), "fixture", options)

    def _damaged(self, check: Check, damage: str, options: dict[str, Any]) -> Subject:
        good = build_plugin(variants(_variants_of(check))["good"], _SETTINGS[_variants_of(check)])
        folder = self._folder / check.id
        folder.mkdir()
        return Subject(damage, str(LibraryBreaker(folder, good)(damage)), "fixture", options)


@dataclass
class Tried:
    """What became of the group of a check.

    Attributes:
        outcomes: With the defect of the check.
        sound: With the same plugin without it.
        faults: How the kit itself failed.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    sound: list[Outcome] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def found(self) -> list[Outcome]:
        """The outcomes by which the defect was found."""
        return findings(self.outcomes, self.sound)


class DefectRuns:
    """Tries defects, group by group: all that are wanted of a group side by side.

    Args:
        processes: Where they are tried.
        subjects: The plugins.
        wanted: The checks whose defects are.
        alone: Whether each is tried on its own check alone, in one way, not on all of the group.
        watched: Makes where those are tried once more that were not found at first: processes with
            the checking allocator, which takes its time.
    """

    def __init__(
        self,
        processes: CheckProcesses,
        subjects: Subjects,
        wanted: Sequence[str],
        *,
        alone: bool = False,
        watched: Callable[[], CheckProcesses] | None = None,
    ) -> None:
        self._processes = processes
        self._watched = watched
        self._subjects = subjects
        self._wanted = wanted
        self._alone = alone
        self._tried: dict[str, Tried] = {}

    def tried(self, check_id: str) -> Tried:
        """Return what became of the defect of a check."""
        if check_id not in self._tried:
            group = {check.id for check in _group(all_checks()[check_id])}
            self._try_all([wanted for wanted in self._wanted if wanted in group])
        return self._tried[check_id]

    def _try_all(self, ids: Sequence[str]) -> None:
        self._try(ids, self._processes)
        missed = [check_id for check_id in ids if not self._is_found(check_id)]
        if missed and self._watched is not None:
            for check_id in missed:
                del self._tried[check_id]
            self._try(missed, self._watched())

    def _is_found(self, check_id: str) -> bool:
        finders = {outcome.check_id for outcome in self._tried[check_id].found}
        return finders == expected_finders(check_id)

    def _try(self, ids: Iterable[str], processes: CheckProcesses) -> None:
        jobs: dict[str, Job] = {}  # the sound plugin is the same for many
        runs: list[tuple[str, bool, str]] = []
        for check in (all_checks()[check_id] for check_id in ids):
            for is_sound, subject in self._pair(check):
                for job in self._jobs(check, subject, is_sound=is_sound):
                    jobs[repr(job)] = job
                    runs.append((check.id, is_sound, repr(job)))
        results = dict(zip(jobs, processes.run(list(jobs.values())), strict=True))
        for check_id, is_sound, key in runs:
            tried = self._tried.setdefault(check_id, Tried())
            (tried.sound if is_sound else tried.outcomes).extend(results[key].outcomes)
            if (fault := results[key].fault) is not None:
                tried.faults.append(str(fault))

    def _pair(self, check: Check) -> Iterator[tuple[bool, Subject]]:
        yield False, self._subjects.defective(check)
        if not self._alone:
            yield True, self._subjects.sound(check)

    def _jobs(self, check: Check, subject: Subject, *, is_sound: bool) -> list[Job]:
        """Return a job for each way in which a check is tried.

        What other checks of its group make of a defect is asked of every fourth, in the first way;
        of all, and in all ways, where the whole table is asked for.
        """
        ways = [reached for reached in Pass if reached in check.ways]
        if self._alone:
            return [subject.job(check, ways[0], [check.id])]
        group = _group(check)
        if not (WHOLE or check.id in _LOOKED_AT_CLOSELY):
            ways = ways[:1]
            group = group if is_sound else [check]
        return [
            subject.job(
                check,
                reached,
                [c.id for c in group if reached in c.ways]
                if is_sound or WHOLE or reached is ways[0]
                else [check.id],
            )
            for reached in ways
        ]


def _variants_of(check: Check) -> str:
    return _VARIANTS_OF.get(check.kind, check.kind)


def findings(outcomes: Sequence[Outcome], sound: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that tell of a defect, given those without it."""
    usual = {_told(outcome) for outcome in sound}
    return [
        outcome
        for outcome in outcomes
        if outcome.verdict is not Verdict.PASSED
        and outcome.verdict not in _UNTRIED
        and _told(outcome) not in usual
    ]


def _told(outcome: Outcome) -> tuple[object, ...]:
    return outcome.check_id, outcome.reached, outcome.verdict, outcome.message


def _group(check: Check) -> list[Check]:
    return [c for c in all_checks().values() if (c.kind, c.group) == (check.kind, check.group)]
