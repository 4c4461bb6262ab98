"""What the host does for slots that a plugin leaves NULL keeps the same rules as a plugin."""

from __future__ import annotations

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job, Limits
from modular_tf.check.level import Level
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin

pytestmark = pytest.mark.xdist_group("defaults of the host")  # one run of the kit serves all


@pytest.fixture(
    scope="module",
    params=[("filesystem", "defect"), ("local_filesystem", "file")],
    ids=lambda param: param[0],
)
def outcomes(request):
    """Every check but random ones through the host, on a plugin that leaves to it what it can."""
    ids = tuple(
        check.id
        for check in all_checks().values()
        if check.kind == "filesystem" and Pass.HOST in check.ways and check.level <= Level.ROBUST
    )
    fixture, scheme = request.param
    path = str(defective_plugin(fixture))
    target = Target(path, "filesystem", Pass.HOST, scheme=scheme, options=Options(many=500))
    job = Job(target, scheme, ids, {DEFECT_VARIABLE: "sparse-table"})
    with CheckProcesses(Limits()) as processes:
        (result,) = processes.run([job])
    assert result.fault is None
    return {outcome.check_id: outcome for outcome in result.outcomes}


def test_nothing_is_amiss(outcomes):
    fine = {Verdict.PASSED, Verdict.SKIPPED, Verdict.NOTED}

    assert {o.check_id: o for o in outcomes.values() if o.verdict not in fine} == {}


def test_a_rename_by_copy_and_delete_is_told_of(outcomes):
    assert outcomes["FS-243"].verdict is Verdict.NOTED
    assert "a copy and a deletion" in outcomes["FS-243"].message


@pytest.mark.parametrize(
    "check_id", ["FS-212", "FS-228", "FS-235", "FS-244", "FS-261", "FS-271", "FS-275", "FS-293"]
)
def test_the_defaults_are_tried(check_id, outcomes):
    assert outcomes[check_id].verdict is Verdict.PASSED
