"""Work that is done in several threads at the same time."""

from __future__ import annotations

import re
import threading

import pytest

from modular_tf.check.calls import CallJournal
from modular_tf.check.expectation import Deviation
from modular_tf.check.outcome import Verdict
from modular_tf.check.under_load import expect_of_threads
from tests.check.trying import defect_job


def test_a_failure_is_that_of_threads_unless_one_alone_shows_it_too():
    together = threading.Barrier(2)

    def fail_beside_another():
        if threading.current_thread() is not threading.main_thread():
            together.wait(timeout=60)
            raise Deviation("two at a time")

    with pytest.raises(Deviation, match="two at a time"):
        expect_of_threads([fail_beside_another] * 2, [fail_beside_another], CallJournal())


def test_the_calls_of_a_failure_are_those_of_its_thread(outcomes_of):
    outcome = outcomes_of(defect_job("filesystem", "FS-321", ["FS-321"]))["FS-321"]

    named = [
        found for call in outcome.calls for found in re.findall(r"/(thread\d|alone-\d+)", call)
    ]
    assert outcome.verdict is Verdict.FAILED, outcome
    assert len({*named}) == 1
    assert named[0].startswith("thread")
    assert "another thread is at work" in outcome.calls[-1]


def test_threads_are_not_blamed_for_a_copy_of_a_file_onto_itself(outcomes_of):
    outcome = outcomes_of(defect_job("filesystem", "FS-252", ["FS-321"]))["FS-321"]

    assert outcome.verdict is Verdict.BLOCKED, outcome
    assert "without other threads it fails too" in outcome.message
