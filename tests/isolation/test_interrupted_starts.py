"""Starts of worker processes that are interrupted leave nothing open."""

from __future__ import annotations

import gc
from itertools import islice

import pytest

from modular_tf.isolation.worker import worker_of
from modular_tf.isolation.worker_process import WorkerProcess
from tests.fixtures.interrupts import Interrupt, interrupt, points
from tests.fixtures.matrices import sampled
from tests.isolation.conftest import descriptors, isolated, wait_until

_STRIDE = 13  # of the points, of which each takes a process
_IN_FINALIZERS = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def _started(service, name):
    return service.instance("ram", name=f"n{name}", environment={})


def _open_now():
    gc.collect()
    return descriptors()


@pytest.fixture
def service():
    with isolated(isolation="none") as made:
        _started(made, "warm").close()  # starts the zygote
        yield made


def test_an_interrupt_while_the_plugin_is_loaded_leaves_no_socket(service, monkeypatch):
    before = _open_now()

    def interrupted(*_):
        raise Interrupt

    monkeypatch.setattr(WorkerProcess, "wait_for_offer", interrupted)
    for number in range(3):
        with pytest.raises(Interrupt):
            _started(service, number)
    monkeypatch.undo()

    wait_until(lambda: _open_now() <= before)
    assert _started(service, 0).get_children("ram://") == []


@_IN_FINALIZERS
@pytest.mark.parametrize("first", sampled(range(_STRIDE), [0]))
def test_an_interrupt_at_any_point_of_a_start_leaves_no_socket(service, first):
    before = _open_now()
    with isolated(isolation="none") as other:
        for point in islice(points(), first, None, _STRIDE):
            if not interrupt(lambda: _started(other, point).close(), point=point):  # noqa: B023
                break
        assert point > 10 * _STRIDE
    wait_until(lambda: _open_now() <= before)


@_IN_FINALIZERS
def test_an_interrupt_at_any_point_of_the_end_of_an_unused_worker_leaves_no_socket(service):
    before = _open_now()
    for point in points():
        made = _started(service, point)
        worker = worker_of(made)
        if not interrupt(worker.leave, point=point):
            break
    assert point > 20
    del made, worker
    service.close()
    wait_until(lambda: _open_now() <= before)
