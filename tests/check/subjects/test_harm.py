"""Checks of a plugin that misuses the heap: who fails, and that nobody else is blamed."""

from __future__ import annotations

import re

import pytest

from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.check.with_allocator import with_allocator

pytestmark = with_allocator
_LOADING = "memory was misused while the plugin was loaded (rule FS-329)"


@pytest.fixture
def outcomes_of(heap_plugin):
    """Try checks of the plugin that misuses the heap, in processes of their own."""

    def try_checks(misuse, *checks, reached=Pass.RAW, preload=True):
        job = Job(
            target=Target(str(heap_plugin), "filesystem", reached, scheme="ram"),
            subject="ram",
            checks=checks,
            environment={"FIXTURE_MISUSE": misuse},
        )
        with CheckProcesses(Limits(jobs=1, preload=preload)) as processes:
            (result,) = processes.run([job])
        assert result.fault is None
        return result.outcomes

    return try_checks


def test_checks_after_a_misuse_get_another_process(outcomes_of):
    found = outcomes_of("free-twice", "FS-256", "FS-257")

    # The plugin does it once a process.
    assert [outcome.verdict for outcome in found] == [Verdict.FAILED, Verdict.FAILED]
    assert all(outcome.found == "heap block of 24 bytes freed twice" for outcome in found)
    assert all("path_exists(" in outcome.calls[-1] for outcome in found)


@pytest.mark.parametrize("misuse", ["overrun", "kept-overrun"])
def test_an_overrun_is_told_with_its_rule(outcomes_of, misuse):
    (found,) = outcomes_of(misuse, "FS-256")

    assert found.message.endswith("(rule FS-329)")
    assert found.found == "heap block of 24 bytes overrun: byte 24 is 0x78"


def test_a_misuse_at_loading_is_told_by_one_check_alone(outcomes_of):
    one, other = outcomes_of("at-loading", "FS-256", "FS-329")

    assert one.verdict is Verdict.PASSED
    assert (other.verdict, other.message) == (Verdict.FAILED, _LOADING)
    assert other.found.endswith("heap block of 24 bytes freed twice")


def test_checks_of_the_library_are_about_other_things(outcomes_of):
    found = outcomes_of("at-loading", "FS-005", "FS-003", reached=Pass.LIBRARY)

    assert [outcome.verdict for outcome in found] == [Verdict.PASSED, Verdict.PASSED]


def test_who_wants_no_allocator_has_none(outcomes_of):
    (found,) = outcomes_of("overrun", "FS-257", preload=False)

    # The system's allocator sees it or not, by what lies beside the block.
    assert found.verdict in {Verdict.PASSED, Verdict.CRASHED}
    assert "heap block" not in found.found


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_a_misuse_of_a_device_plugin_is_told_with_its_call(reached):
    job = Job(
        target=Target(str(defective_plugin("device")), "device", reached, ordinal=0),
        subject="DEFECT:0",
        checks=("SE-329",),
        environment={DEFECT_VARIABLE: "SE-329"},
    )
    with CheckProcesses(Limits(jobs=1)) as processes:
        (result,) = processes.run([job])

    (found,) = result.outcomes
    assert (found.verdict, result.fault) == (Verdict.FAILED, None)
    assert re.fullmatch(
        r"misuse of the heap was seen after allocate\(.*\) \(rule SE-329\)", found.message
    )
