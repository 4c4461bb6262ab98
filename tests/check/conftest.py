"""Processes in which checks are tried: those of one session serve all tests."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache

import pytest

from modular_tf.check.job import Limits
from modular_tf.check.run import CheckProcesses

_JOBS = 4  # what is found by waiting is waited for side by side


@pytest.fixture(scope="session")
def processes_with():
    """Return the processes that are started with the checking allocator, or without it."""
    with ExitStack() as opened:
        yield cache(
            lambda preload: opened.enter_context(
                CheckProcesses(Limits(jobs=_JOBS, preload=preload))
            )
        )


@pytest.fixture
def processes(processes_with):
    """Those without it."""
    return processes_with(False)


@pytest.fixture
def outcomes_of(processes_with):
    """Try jobs side by side, and return what became of the checks by their ids."""

    def run(*jobs, preload=False):
        results = processes_with(preload).run(list(jobs))
        assert [result.fault for result in results if result.fault is not None] == []
        return {outcome.check_id: outcome for result in results for outcome in result.outcomes}

    return run
