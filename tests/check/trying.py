"""Jobs of the kit: the trial of checks on one plugin."""

from __future__ import annotations

from collections import defaultdict

from modular_tf.check.job import Job
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin

FINE = frozenset({Verdict.PASSED, Verdict.SKIPPED, Verdict.NOTED})
"""What becomes of checks of a sound plugin."""


def job_of(library, ids, reached=Pass.RAW, *, kind="filesystem", environment=None, **target):
    """Return the job of trying checks; the scheme is that of the switchable plugins."""
    given = {"ordinal": 0} if kind == "device" else {"scheme": "defect"}
    made = Target(str(library), kind, reached, **{**given, **target})
    return Job(made, "subject", tuple(ids), environment or {})


def defect_job(fixture, defect, ids, reached=Pass.RAW, **target):
    """Return the job of trying checks on a switchable plugin with a defect, "" for none."""
    environment = {DEFECT_VARIABLE: defect} if defect else None
    return job_of(defective_plugin(fixture), ids, reached, environment=environment, **target)


def ids_by_group(checks, reached):
    """Return the ids of checks that are tried in a way, in a list for each group."""
    groups = defaultdict(list)
    for check in checks:
        if reached in check.ways:
            groups[check.group].append(check.id)
    return list(groups.values())
