"""Work that is done in several threads at the same time."""

from __future__ import annotations

import random
import threading
from functools import partial

import pytest

from modular_tf.check.expectation import Deviation
from modular_tf.check.filesystem.load import STEPS_OF_THREADS
from modular_tf.check.outcome import Verdict
from modular_tf.check.sequences import random_program
from modular_tf.check.under_load import at_once, expect_of_threads
from tests.check.trying import defect_job, outcomes_of


def test_each_runs_in_a_thread_of_its_own_and_results_keep_their_order():
    together = threading.Barrier(4, timeout=60)

    def work(number):
        together.wait()  # breaks unless all four are under way
        return number, threading.get_ident()

    results = at_once([partial(work, number) for number in range(4)])

    assert [number for number, _ in results] == [0, 1, 2, 3]
    assert len({thread for _, thread in results}) == 4


def test_all_are_done_before_the_first_failure_is_raised():
    done = []

    def fail(text):
        done.append(text)
        raise ValueError(text)

    works = [partial(done.append, "worked"), partial(fail, "first"), partial(fail, "second")]
    with pytest.raises(ValueError, match="first"):
        at_once(works)
    assert sorted(done) == ["first", "second", "worked"]


def test_a_failure_is_that_of_threads_unless_one_alone_shows_it_too():
    together = threading.Barrier(2)

    def fail_beside_another():
        if threading.current_thread() is not threading.main_thread():
            together.wait(timeout=60)
            raise Deviation("two at a time")

    with pytest.raises(Deviation, match="two at a time"):
        expect_of_threads([fail_beside_another] * 2, [fail_beside_another])


def test_threads_are_not_blamed_for_a_copy_of_a_file_onto_itself():
    outcome = outcomes_of(defect_job("filesystem", "FS-252", ["FS-321"]), jobs=1)["FS-321"]

    assert outcome.verdict is Verdict.BLOCKED, outcome
    assert "without other threads it fails too" in outcome.message


def test_threads_write_and_read_more_than_small_buffers_hold():
    program = random_program(STEPS_OF_THREADS, random.Random(1), 200)

    written = [sum(map(len, given[1])) // 2 for name, given in program if name == "write"]
    read = [given[2] for name, given in program if name == "read"]
    assert max(written) > 8192
    assert max(read) > 2048
