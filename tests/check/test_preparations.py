"""A check that cannot be prepared is blocked, and names the check of the step that failed."""

from __future__ import annotations

from random import Random
from unittest.mock import MagicMock

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.catalogue import all_checks
from modular_tf.check.device import robustness
from modular_tf.check.device.operations import OPERATIONS
from modular_tf.check.device.workspace import Workspace, prepared
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin

_STEPS = [row.name for row in OPERATIONS.values() if row.about]


@pytest.mark.parametrize("step", _STEPS)
def test_a_step_of_a_device_names_its_check(step):
    with pytest.raises(Blocked, match=r"see SE-\d+$") as blocked:
        prepared(Answer(int(Code.INTERNAL), "no", call=f"{step}(16)"))

    check = all_checks()[str(blocked.value).rpartition(" ")[2]]
    assert check.kind == "device"


class _RefusingDevice:
    """A device that refuses one operation, and reports of the others that they worked."""

    def __init__(self, refused, code=Code.INTERNAL):
        self.calls_back = True
        self._refused, self._code = refused, code

    def perform(self, row, *_arguments):
        if row.name == self._refused:
            return Answer(int(self._code), "no")
        is_unknown = row.name == "device_memory_usage"
        return Answer(int(Code.UNAVAILABLE if is_unknown else Code.OK), value=MagicMock())

    def __getattr__(self, _name):
        return MagicMock()


@pytest.mark.parametrize("step", _STEPS)
def test_the_check_of_a_step_fails_where_the_step_does(step):
    check = all_checks()[OPERATIONS[step].about]
    target = Target("", "device", Pass.RAW, ordinal=0)
    device = Workspace(_RefusingDevice(step), target, Random(0))

    with pytest.raises(Deviation):
        check.run(device)


def test_a_device_without_one_copy_is_watched_while_it_does_the_rest(monkeypatch):
    monkeypatch.setattr(robustness, "checking_allocator", MagicMock())
    device, seen = _RefusingDevice("sync_memcpy_htod", Code.UNIMPLEMENTED), []
    perform = device.perform
    device.perform = lambda row, *given: seen.append(row.name) or perform(row, *given)

    robustness.keeps_to_its_heap(Workspace(device, Target("", "device", Pass.RAW), Random(0)))

    assert {"host_memory_allocate", "record_event", "memcpy_htod"} <= set(seen)


def _tried(fixture, defect, ids, **target):
    job = Job(Target(str(defective_plugin(fixture)), **target), "x", ids, {DEFECT_VARIABLE: defect})
    with CheckProcesses(Limits(jobs=1)) as processes:
        (result,) = processes.run([job])
    return result.outcomes


def test_a_device_that_cannot_copy_fails_there_and_blocks_the_rest():
    ids = ("SE-200", "SE-202", "SE-207")
    copies, *others = _tried(
        "device", "copies-are-refused", ids, kind="device", reached=Pass.RAW, ordinal=0
    )

    assert copies.verdict is Verdict.FAILED
    assert [one.verdict for one in others] == [Verdict.BLOCKED] * 2
    assert {one.message.rpartition(": ")[2] for one in others} == {"see SE-200"}


def test_a_filesystem_that_writes_nothing_fails_there_and_blocks_the_rest():
    ids = ("FS-156", "FS-170", "FS-235")
    outcomes = _tried(
        "filesystem", "files-are-refused", ids,
        kind="filesystem", reached=Pass.RAW, scheme="defect",
    )  # fmt: skip

    assert [one.verdict for one in outcomes] == [Verdict.BLOCKED, Verdict.FAILED, Verdict.BLOCKED]
    assert {one.message.rpartition(": ")[2] for one in (outcomes[0], outcomes[2])} == {"see FS-170"}


def test_files_of_long_paths_that_are_cut_are_found():
    (cut,) = _tried(
        "filesystem", "long-paths-are-cut", ("FS-357",),
        kind="filesystem", reached=Pass.RAW, scheme="defect",
    )  # fmt: skip

    assert (cut.verdict, cut.expected, cut.found) == (Verdict.FAILED, "b'one'", "b'two'")
