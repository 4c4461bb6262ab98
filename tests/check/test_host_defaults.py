"""What the host does for slots that a plugin leaves NULL keeps the same rules as a plugin."""

from __future__ import annotations

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.isolation.job import Job
from modular_tf.check.isolation.processes import CheckProcesses
from modular_tf.check.limits import Limits
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin

_HOST_ONLY = {"FS-243"}  # a rename by copy and delete is noted


@pytest.fixture(scope="module")
def outcomes():
    """Every check through the host, on a plugin that leaves to it what it can."""
    ids = tuple(
        check.id
        for check in all_checks().values()
        if check.kind == "filesystem" and Pass.HOST in check.passes
    )
    path = str(defective_plugin("filesystem"))
    target = Target(path, "filesystem", Pass.HOST, scheme="defect", options={"many": 500})
    job = Job(target, "defect://", ids, {DEFECT_VARIABLE: "sparse-table"})
    with CheckProcesses(Limits()) as processes:
        (result,) = processes.run([job])
    assert result.fault is None
    return {outcome.check_id: outcome for outcome in result.outcomes}


def test_nothing_is_amiss(outcomes):
    fine = {Verdict.PASSED, Verdict.SKIPPED}
    amiss = {o.check_id: o for o in outcomes.values() if o.verdict not in fine}

    assert {check_id: o for check_id, o in amiss.items() if check_id not in _HOST_ONLY} == {}
    assert amiss.keys() == _HOST_ONLY


@pytest.mark.parametrize(
    "check_id", ["FS-212", "FS-228", "FS-235", "FS-244", "FS-261", "FS-271", "FS-275", "FS-293"]
)
def test_the_defaults_are_tried(check_id, outcomes):
    assert outcomes[check_id].verdict is Verdict.PASSED
