"""What a run of the kit leaves in the directory that its user names."""

from __future__ import annotations

from collections import defaultdict

import pytest

from modular_tf.check.job import Job, Limits
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import selected
from modular_tf.check.run import CheckProcesses
from modular_tf.check.settings import CheckSettings
from modular_tf.check.target import Target
from tests.check.building import defective_plugin

_OPTIONS = Options(large_bytes=100_000, many=50)


def _run(root, reached, checks):
    path = str(defective_plugin("local_filesystem"))
    target = Target(
        path, "filesystem", reached, scheme="file", root=f"file://{root}", options=_OPTIONS
    )
    groups = defaultdict(list)
    for check in checks:
        if reached in check.ways:
            groups[check.group].append(check.id)
    with CheckProcesses(Limits()) as processes:
        results = processes.run([Job(target, "file", tuple(ids)) for ids in groups.values()])
    return {outcome.check_id: outcome for result in results for outcome in result.outcomes}


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_the_checks_leave_nothing_in_the_root(reached, tmp_path):
    outcomes = _run(tmp_path, reached, selected(CheckSettings(), ["filesystem"]))

    assert outcomes["FS-330"].verdict is Verdict.PASSED
    assert [path.name for path in tmp_path.rglob("*")] == []
