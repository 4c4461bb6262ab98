"""Checks of a plugin that misuses memory: which fail, and that no other is blamed."""

from __future__ import annotations

import re

import pytest

from modular_tf.check.outcome import Pass, Verdict
from tests.check.trying import defect_job, job_of, outcomes_of
from tests.check.with_allocator import with_allocator

_LOADING = "memory was misused while the plugin was loaded (rule FS-329)"
_MISUSES = {
    "overrun": "heap block of 24 bytes overrun: byte 24 is 0x78",
    "kept-overrun": "heap block of 24 bytes overrun: byte 24 is 0x78",
    "free-twice": "heap block of 24 bytes freed twice",
}


@pytest.fixture
def outcomes_with(heap_plugin):
    """Try checks of the plugin that misuses the heap, in processes of their own."""

    def try_checks(misuse, *checks, reached=Pass.RAW, preload=True):
        environment = {"FIXTURE_MISUSE": misuse}
        job = job_of(heap_plugin, checks, reached, scheme="ram", environment=environment)
        return outcomes_of(job, jobs=1, preload=preload)

    return try_checks


def test_a_byte_behind_a_read_and_a_path_that_is_written_to_are_breaches():
    jobs = [defect_job("filesystem", check_id, [check_id]) for check_id in ("FS-163", "FS-329")]
    outcomes = outcomes_of(*jobs, jobs=2)

    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.FAILED}
    assert outcomes["FS-163"].message == "read wrote outside of its output (rule FS-163)"
    assert outcomes["FS-163"].found == "byte 2 of the 2 bytes that were lent"
    breach = "path_exists wrote outside of its output (rule FS-329)"
    assert outcomes["FS-329"].message == breach


@with_allocator
@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
@pytest.mark.parametrize("misuse", _MISUSES)
def test_any_check_sees_harm_to_the_heap_and_those_after_it_get_another_process(
    outcomes_with, reached, misuse
):
    found = outcomes_with(misuse, "FS-256", "FS-257", reached=reached)

    if (misuse, reached) == ("kept-overrun", Pass.HOST):  # a block of the host's is not looked at
        assert {outcome.verdict for outcome in found.values()} == {Verdict.PASSED}
        return
    for outcome in found.values():  # the plugin does it once a process
        assert outcome.verdict is Verdict.FAILED
        assert outcome.message.startswith("misuse of the heap was seen after path_exists(")
        assert outcome.message.endswith("(rule FS-329)")
        assert outcome.found == _MISUSES[misuse]
        assert "path_exists(" in outcome.calls[-1]


@with_allocator
def test_a_misuse_at_loading_is_reported_by_one_check_alone(outcomes_with):
    found = outcomes_with("at-loading", "FS-256", "FS-329")

    assert found["FS-256"].verdict is Verdict.PASSED
    assert (found["FS-329"].verdict, found["FS-329"].message) == (Verdict.FAILED, _LOADING)
    assert found["FS-329"].found.endswith("heap block of 24 bytes freed twice")
    # Checks of the library are about other things.
    of_library = outcomes_with("at-loading", "FS-005", "FS-003", reached=Pass.LIBRARY)
    assert [outcome.verdict for outcome in of_library.values()] == [Verdict.PASSED] * 2


@with_allocator
def test_processes_without_the_allocator_see_no_blocks(outcomes_with):
    found = outcomes_with("overrun", "FS-257", preload=False)["FS-257"]

    # The system's allocator sees it or not, by what lies beside the block.
    assert found.verdict in {Verdict.PASSED, Verdict.CRASHED}
    assert "heap block" not in found.found


@with_allocator
@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_a_misuse_of_a_device_plugin_is_reported_with_its_call(reached):
    job = defect_job("device", "SE-329", ["SE-329"], reached, kind="device")
    found = outcomes_of(job, jobs=1)["SE-329"]

    assert found.verdict is Verdict.FAILED
    call = r"misuse of the heap was seen after (device\.)?allocate\(.*\) \(rule SE-329\)"
    assert re.fullmatch(call, found.message)
