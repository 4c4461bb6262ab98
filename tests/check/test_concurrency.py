"""Work that is done in several threads at the same time."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from modular_tf.check.concurrency import run_at_once


def test_each_runs_in_a_thread_of_its_own_and_results_keep_their_order():
    together = threading.Barrier(4, timeout=60)

    def work(number):
        together.wait()  # breaks unless all four are under way
        return number, threading.get_ident()

    results = run_at_once([partial(work, number) for number in range(4)])

    assert [number for number, _ in results] == [0, 1, 2, 3]
    assert len({thread for _, thread in results}) == 4


def test_all_are_done_before_the_first_failure_is_raised():
    done = []

    def fail(text):
        done.append(text)
        raise ValueError(text)

    works = [partial(done.append, "worked"), partial(fail, "first"), partial(fail, "second")]
    with pytest.raises(ValueError, match="first"):
        run_at_once(works)
    assert sorted(done) == ["first", "second", "worked"]
