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

from modular_tf.abi.layouts import Dialect
from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job
from modular_tf.check.options import Options
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, FIXTURES, defective_plugin, listed_defects
from tests.check.unfit_libraries import UNFIT, unfit_library
from tests.device.dialects.building import Build
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent
_SETTINGS = {
    "filesystem": {"FIXTURE_SCHEME": "fixture"},
    "device": {"FIXTURE_TYPE": "FIXTURE", "FIXTURE_PLATFORM": "FIXTURE_CHIP"},
}
_ABSENT = {"kernel": ("TF_DefectThatNoHostHas",), "unfit": ("TF_LookUpOpDef",)}
"""The symbols that no host has, by fixture, as a plan finds them."""

_OF_THE_HEAP = ("heap", "kernel memory")
"""The groups whose checks need the checking allocator, which takes its time."""

_SCHEMES = {"filesystem": "defect", "local_filesystem": "file"}
_QUICKLY = {
    "large_bytes": 1 << 16, "many": 40, "pressure_mib": 32, "programs": 60, "repeat": 64,
}  # fmt: skip
"""Options of all subjects: what a defect needs beyond them, `defects.toml` has."""

WHOLE = bool(os.environ.get("MODULAR_TF_WHOLE_DEFECT_TABLE"))
"""Whether all is tried that can be, which takes several times as long: scripts/test_matrices."""


@dataclass(frozen=True)
class Subject:
    """A plugin to try checks on.

    Attributes:
        fixture: The switchable plugin, or the variant of another.
        path: Its library.
        scheme: What it serves as a filesystem.
        options: For the checks.
        environment: Variables of the process; they choose the defect.
    """

    fixture: str
    path: str
    scheme: str
    options: dict
    environment: dict = field(default_factory=dict)

    def job(self, check, reached, ids):
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


def read_table(name):
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))


@cache
def fixtures_by_check():
    """Return which switchable plugin has the defect of a check."""
    return {check_id: name for name in FIXTURES for check_id in listed_defects(name)}


def _sampled():
    """Return a check of each group for each kind of source that its defects have."""
    table, fixtures = read_table("defects.toml"), fixtures_by_check()
    sources = {check_id: name for name in ("variants", "dialects") for check_id in table[name]}
    first = {}
    for check_id, check in all_checks().items():
        source = fixtures.get(check_id) or sources.get(check_id, "unfit")
        first.setdefault((check.kind, check.group, source), check_id)
    return [check_id for check_id in first.values() if check_id not in _DEAR]


_DEAR = {"SE-300", "FS-320"}
"""What is found by random programs: for half a minute, or for minutes on a busy machine."""

SAMPLE = _sampled()
"""The checks whose defects each run tries: the mechanism of each group is met."""

ALL_PASS = """\
import json, sys
path, module, job = json.loads(sys.argv[1])
sys.path[:] = path
from dataclasses import replace
from importlib import import_module
from modular_tf.check.catalogue import all_checks
checks = all_checks()
for check_id, check in checks.items():
    checks[check_id] = replace(check, run=lambda _: None)
import_module(module).serve(**job)
"""
"""What starts processes in which each check passes, whatever the plugin does."""


def expected_finders(check_id):
    """Return which of the checks that are tried must find the defect of one."""
    return {check_id, *read_table("coupled_checks.toml").get(check_id, ())}


def checks_with_defects():
    """Return the ids of all checks that a defect is known for."""
    table = read_table("defects.toml")
    elsewhere = {*table["variants"], *table["dialects"], *UNFIT}
    known = elsewhere | fixtures_by_check().keys()
    return [check_id for check_id in all_checks() if check_id in known]


class Subjects:
    """Builds plugins with and without a defect; damaged files are written to the folder."""

    def __init__(self, folder):
        self._folder = folder
        self._table = read_table("defects.toml")

    def of(self, check, *, is_sound):
        """Return the plugin with the defect of a check, or the same without it."""
        table, id_ = self._table, check.id
        options = table["options"].get(id_, {})
        kind = "filesystem" if check.kind == "library" else check.kind
        if id_ in table["dialects"]:
            build = {**table["dialects"][id_], **({"macros": {}} if is_sound else {})}
            build["dialect"] = Dialect(build["dialect"])
            return Subject("dialect", str(Build(**build).compile()), "", options)
        if is_sound and (id_ in table["variants"] or id_ in UNFIT):
            return Subject("good", _variant(kind, "good"), "fixture", options)
        if id_ in table["variants"]:
            name = table["variants"][id_]
            return Subject(name, _variant(kind, name), "fixture", options)
        if id_ in UNFIT:
            folder = self._folder / id_
            folder.mkdir()
            library = unfit_library(id_, folder)
            return Subject("unfit", str(library), "fixture", options)
        fixture = fixtures_by_check()[id_]
        environment = {} if is_sound else {DEFECT_VARIABLE: id_}
        path, scheme = str(defective_plugin(fixture)), _SCHEMES.get(fixture, "")
        return Subject(fixture, path, scheme, options, environment)

    def job_of_defect(self, check_id):
        """Return the job that tries a check alone on its defect, in its first way."""
        check = all_checks()[check_id]
        reached = next(way for way in Pass if way in check.ways)
        return self.of(check, is_sound=False).job(check, reached, [check_id])


def _variant(kind, name):
    return str(build_plugin(variants(kind)[name], _SETTINGS[kind]))


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
    def found(self):
        return findings(self.outcomes, self.sound)


class DefectRuns:
    """Tries defects, group by group: all that are wanted of a group side by side.

    Args:
        processes_with: Returns where they are tried, with the checking allocator or without it.
        subjects: The plugins.
        wanted: The checks whose defects are.
    """

    def __init__(self, processes_with, subjects, wanted):
        self._processes_with, self._subjects, self._wanted = processes_with, subjects, wanted
        self._tried = {}

    def tried(self, check_id):
        if check_id not in self._tried:
            check = all_checks()[check_id]
            group = {check.id for check in _group(check)}
            processes = self._processes_with(WHOLE or check.group in _OF_THE_HEAP)
            self._try([wanted for wanted in self._wanted if wanted in group], processes)
        return self._tried[check_id]

    def _try(self, ids, processes):
        jobs, runs = {}, []  # the sound plugin is the same for many
        for check in (all_checks()[check_id] for check_id in ids):
            for is_sound in (False, True):
                subject = self._subjects.of(check, is_sound=is_sound)
                for job in self._jobs(check, subject):
                    jobs[repr(job)] = job
                    runs.append((check.id, is_sound, repr(job)))
        results = dict(zip(jobs, processes.run(list(jobs.values())), strict=True))
        for check_id, is_sound, key in runs:
            tried = self._tried.setdefault(check_id, Tried())
            (tried.sound if is_sound else tried.outcomes).extend(results[key].outcomes)
            if (fault := results[key].fault) is not None:
                tried.faults.append(str(fault))

    def _jobs(self, check, subject):
        """Return a job for each way in which a check is tried.

        What other checks of its group make of a defect is asked in the first way; in all ways,
        where the whole table is asked for.
        """
        ways = [reached for reached in Pass if reached in check.ways]
        return [
            subject.job(
                check,
                reached,
                [c.id for c in _group(check) if reached in c.ways]
                if WHOLE or reached is ways[0]
                else [check.id],
            )
            for reached in ways
        ]


def findings(outcomes, sound):
    """Return the outcomes that show a defect, given those without it."""
    usual = {_shown(outcome) for outcome in sound}
    silent = {Verdict.PASSED, Verdict.SKIPPED, Verdict.BLOCKED}
    return [o for o in outcomes if o.verdict not in silent and _shown(o) not in usual]


def _shown(outcome):
    return outcome.check_id, outcome.reached, outcome.verdict, outcome.message


def _group(check):
    return [c for c in all_checks().values() if (c.kind, c.group) == (check.kind, check.group)]
