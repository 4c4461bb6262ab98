"""Checks of a plugin that misuses memory: which fail, and that no other is blamed."""

from __future__ import annotations

import pytest

from modular_tf.check.outcome import Pass, Verdict
from tests.check.trying import job_of
from tests.check.with_allocator import with_allocator

_MISUSES = {
    "overrun": "heap block of 24 bytes overrun: byte 24 is 0x78",
    "kept-overrun": "heap block of 24 bytes overrun: byte 24 is 0x78",
    "free-twice": "heap block of 24 bytes freed twice",
}


@pytest.fixture
def outcomes_with(heap_plugin, outcomes_of):
    """Try checks of the plugin that misuses the heap, in processes of their own."""

    def try_checks(misuse, *checks, reached=Pass.RAW, preload=True):
        environment = {"FIXTURE_MISUSE": misuse}
        job = job_of(heap_plugin, checks, reached, scheme="ram", environment=environment)
        return outcomes_of(job, preload=preload)

    return try_checks


@with_allocator
@pytest.mark.parametrize(
    ("misuse", "reached"),
    [
        ("overrun", Pass.RAW),
        ("kept-overrun", Pass.RAW),
        ("free-twice", Pass.HOST),
    ],
)
def test_any_check_sees_harm_to_the_heap_and_those_after_it_get_another_process(
    outcomes_with, reached, misuse
):
    found = outcomes_with(misuse, "FS-256", "FS-257", reached=reached)

    assert len(found) == 2
    for outcome in found.values():  # the plugin does it once a process
        assert outcome.verdict is Verdict.FAILED
        assert outcome.message.startswith("misuse of the heap was seen after path_exists(")
        assert outcome.message.endswith("(rule FS-329)")
        assert outcome.found == _MISUSES[misuse]
        assert "path_exists(" in outcome.calls[-1]
        assert outcome.broken_rule == "FS-329"


@with_allocator
def test_a_misuse_at_loading_is_reported_by_one_check_alone(outcomes_with):
    found = outcomes_with("at-loading", "FS-256", "FS-329")
    reported = found["FS-329"]

    assert found["FS-256"].verdict is Verdict.PASSED
    assert reported.verdict is Verdict.FAILED
    assert reported.message == "memory was misused while the plugin was loaded (rule FS-329)"
    assert reported.found.endswith("heap block of 24 bytes freed twice")
    # Checks of the library are about other things.
    of_library = outcomes_with("at-loading", "FS-005", "FS-003", reached=Pass.LIBRARY)
    assert [outcome.verdict for outcome in of_library.values()] == [Verdict.PASSED] * 2


@with_allocator
def test_a_misuse_while_the_plugin_is_taken_down_is_the_last_checks(outcomes_with):
    found = outcomes_with("at-cleanup", "FS-256", "FS-257")
    last = found["FS-257"]

    assert found["FS-256"].verdict is Verdict.PASSED
    assert last.verdict is Verdict.FAILED
    assert last.message.startswith("misuse of the heap was seen after cleanup(")
    assert last.message.endswith("(rule FS-329), while the plugin was taken down")
    assert last.found == "heap block of 24 bytes freed twice"
    assert last.calls[-1].startswith("cleanup(")
    assert last.broken_rule == "FS-329"
