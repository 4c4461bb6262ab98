"""8 threads on 4 streams: the order that the dependencies demand is the order that is seen."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from modular_tf.device.streams.stream import Stream
from tests.device.order_model import (
    SEEN,
    Kind,
    Trace,
    demands,
    program_of,
    random_program,
    violations,
)
from tests.device.order_run import Run

# What is seen depends on the scheduler, so a failure says its program instead of looking for a
# smaller one; the programs are the same in every run.
orders = settings(
    max_examples=60,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@orders
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(100, 250))
def test_the_order_is_what_the_dependencies_demand(host_device, seed, size):
    program = random_program(seed, size)
    note("\n".join(map(str, program)))
    assert violations(program, Run(host_device, program)()) == []


def test_the_programs_demand_something():
    judged = [demands(random_program(seed, 200)) for seed in range(20)]
    assert min(judged) > 20


# -- the model itself: small programs whose orders are known -----------------------------------

A, B = 0, 1  # threads, or streams


def program(*steps):
    """Return the program of steps (thread, kind, stream)."""
    return program_of([(thread, kind, stream, A, 0) for thread, kind, stream in steps])


USES_OF_EVENTS = [Kind.WAIT_EVENT, Kind.HOST_WAIT, Kind.HOST_BLOCK]
CALL = Kind.CALLBACK
PROGRAMS = {
    "a stream keeps the order of one thread": ([(A, CALL, A), (A, Kind.READ, A)], {0}),
    "streams are not ordered by themselves": ([(A, CALL, A), (A, CALL, B)], set()),
    "threads are not ordered by themselves": ([(A, CALL, A), (B, CALL, A)], set()),
    **{
        f"{kind.value} orders two threads and streams": (
            [(A, CALL, A), (A, Kind.RECORD, A), (A, CALL, A), (B, kind, B), (B, CALL, B)],
            {0},
        )
        for kind in USES_OF_EVENTS
    },
    "a dependency is of one thread": (
        [(A, CALL, A), (B, CALL, A), (A, Kind.DEPEND, B), (A, CALL, B)],
        {0},
    ),
    "a wait for a stream orders what the thread does then": (
        [(A, CALL, A), (A, Kind.HOST_STREAM, A), (A, CALL, B)],
        {0},
    ),
}


@pytest.mark.parametrize(("steps", "done"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_last_step_of_a_program_waits_for_what_the_model_says(steps, done):
    whole = program(*steps)
    assert {n for n in whole[-1].done if whole[n].kind in SEEN} == done


def test_a_trace_out_of_order_is_found():
    calls = program((A, CALL, A), (A, CALL, A))
    right = Trace({0: 0, 1: 2}, {0: 1, 1: 3}, [], {}, {})
    wrong = Trace({0: 0, 1: 1}, {0: 2, 1: 3}, [], {}, {})
    assert violations(calls, right) == []
    [found] = violations(calls, wrong)
    assert "did not wait for" in found


@pytest.mark.parametrize("lost", ["wait_event", "wait_for"])
def test_a_device_that_loses_a_dependency_is_found(host_device, monkeypatch, lost):
    """The slow side of the dependency waits until the other has run, which it must not."""
    kind = {"wait_event": Kind.WAIT_EVENT, "wait_for": Kind.DEPEND}[lost]
    steps = program(*[(A, CALL, A)] * 3, (A, Kind.RECORD, A), (A, kind, B), (A, CALL, B))
    run, overtaken = Run(host_device, steps), threading.Event()
    monkeypatch.setattr(Stream, lost, lambda *_: None)

    def call(number):
        if number == 0:
            overtaken.wait()
        Run._called(run, number)
        if number == 5:
            overtaken.set()

    monkeypatch.setattr(run, "_called", call)
    assert len(violations(steps, run())) == 3
