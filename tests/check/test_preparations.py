"""A check that cannot be prepared is blocked, and names the check of the step that failed."""

from __future__ import annotations

from random import Random
from unittest.mock import MagicMock

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.catalogue import all_checks
from modular_tf.check.device.operations import OPERATIONS
from modular_tf.check.device.workspace import Workspace, prepared
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.target import Target
from tests.check.trying import defect_job


class _RefusingDevice:
    """A device that refuses one operation, and reports of the others that they worked."""

    calls_back = True

    def __init__(self, refused):
        self._refused = refused

    def perform(self, row, *_arguments):
        if row.name == self._refused:
            return Answer(int(Code.INTERNAL), "no")
        is_unknown = row.name == "device_memory_usage"
        return Answer(int(Code.UNAVAILABLE if is_unknown else Code.OK), value=MagicMock())

    def __getattr__(self, _name):
        return MagicMock()


@pytest.mark.parametrize("step", [row.name for row in OPERATIONS.values() if row.about])
def test_a_step_of_a_device_names_its_check_which_fails_where_the_step_does(step):
    with pytest.raises(Blocked, match=f"{step} failed") as blocked:
        prepared(Answer(int(Code.INTERNAL), "no", call=f"{step}(16)"))

    (check,) = map(all_checks().get, blocked.value.see)
    device = Workspace(_RefusingDevice(step), Target("", "device", Pass.RAW, ordinal=0), Random(0))
    with pytest.raises(Deviation):
        check.run(device)


@pytest.mark.parametrize(
    ("kind", "defect", "fails", "others"),
    [
        ("device", "copies-are-refused", "SE-200", ["SE-202", "SE-207"]),
        # SE-243 holds a stream by a callback.
        ("device", "callbacks-are-not-called", "SE-279", ["SE-243"]),
        # FS-330 is tried in a process that it starts.
        ("filesystem", "files-are-refused", "FS-170", ["FS-156", "FS-235", "FS-330"]),
    ],
)
def test_what_cannot_copy_or_write_fails_there_and_blocks_the_rest(
    kind, defect, fails, others, outcomes_of
):
    outcomes = outcomes_of(defect_job(kind, defect, [*others, fails], kind=kind))

    assert outcomes.pop(fails).verdict is Verdict.FAILED
    blocked = {(one.verdict, one.see) for one in outcomes.values()}
    assert blocked == {(Verdict.BLOCKED, (fails,))}
