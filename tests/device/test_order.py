"""8 threads on 4 streams: the order that the dependencies demand is the order that is seen."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from modular_tf.device.streams.stream import Stream
from tests.device.order_model import (
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


def test_a_stream_keeps_the_order_of_one_thread():
    program = program_of([(A, Kind.CALLBACK, A, 0, 0), (A, Kind.READ, A, 0, 0)])
    assert program[1].done == {0}


def test_neither_threads_nor_streams_are_ordered_by_themselves():
    apart = program_of([(A, Kind.CALLBACK, A, 0, 0), (A, Kind.CALLBACK, B, 0, 0)])
    assert apart[1].done == set()
    raced = program_of([(A, Kind.CALLBACK, A, 0, 0), (B, Kind.CALLBACK, A, 0, 0)])
    assert raced[1].done == set()


@pytest.mark.parametrize("kind", [Kind.WAIT_EVENT, Kind.HOST_WAIT, Kind.HOST_BLOCK])
def test_an_event_orders_two_threads_and_streams(kind):
    program = program_of(
        [
            (A, Kind.CALLBACK, A, 0, 0),
            (A, Kind.RECORD, A, 0, 0),
            (A, Kind.CALLBACK, A, 0, 0),
            (B, kind, B, 0, 0),
            (B, Kind.CALLBACK, B, 0, 0),
        ]
    )
    assert program[4].done - {3} == {0, 1}


def test_a_dependency_is_of_one_thread():
    program = program_of(
        [
            (A, Kind.CALLBACK, A, 0, 0),
            (B, Kind.CALLBACK, A, 0, 0),
            (A, Kind.DEPEND, B, A, 0),
            (A, Kind.CALLBACK, B, 0, 0),
        ]
    )
    assert program[3].done == {0, 2}


def test_a_wait_for_a_stream_orders_what_the_thread_does_then():
    program = program_of(
        [
            (A, Kind.CALLBACK, A, 0, 0),
            (A, Kind.HOST_STREAM, A, 0, 0),
            (A, Kind.CALLBACK, B, 0, 0),
        ]
    )
    assert program[2].done == {0}


def test_a_trace_out_of_order_is_found():
    program = program_of([(A, Kind.CALLBACK, A, 0, 0), (A, Kind.CALLBACK, A, 0, 0)])
    right = Trace({0: 0, 1: 2}, {0: 1, 1: 3}, [], {}, {})
    wrong = Trace({0: 0, 1: 1}, {0: 2, 1: 3}, [], {}, {})
    assert violations(program, right) == []
    [found] = violations(program, wrong)
    assert "did not wait for" in found


@pytest.mark.parametrize("lost", ["wait_event", "wait_for"])
def test_a_device_that_loses_a_dependency_is_found(host_device, monkeypatch, lost):
    """The slow side of the dependency waits until the other has run, which it must not."""
    kind = {"wait_event": Kind.WAIT_EVENT, "wait_for": Kind.DEPEND}[lost]
    program = program_of(
        [
            *[(A, Kind.CALLBACK, A, 0, 0)] * 3,
            (A, Kind.RECORD, A, 0, 0),
            (A, kind, B, A, 0),
            (A, Kind.CALLBACK, B, 0, 0),
        ]
    )
    run, overtaken = Run(host_device, program), threading.Event()
    monkeypatch.setattr(Stream, lost, lambda *_: None)

    def call(number):
        if number == 0:
            overtaken.wait()
        Run._called(run, number)
        if number == 5:
            overtaken.set()

    monkeypatch.setattr(run, "_called", call)
    assert len(violations(program, run())) == 3
