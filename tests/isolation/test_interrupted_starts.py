"""Starts of worker processes that are interrupted, or meet a shortage, leave nothing open."""

from __future__ import annotations

import gc
import time
from itertools import islice
from pathlib import Path

import pytest

from modular_tf.isolation.worker import worker_of
from modular_tf.isolation.worker_process import WorkerProcess
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import Interrupt, interrupt, points

_STRIDE = 7  # of the points: each takes a process


def _descriptors() -> set[str]:
    gc.collect()
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def _wait_until_only(expected: set[str]) -> None:
    deadline = time.monotonic() + 30
    while left := _descriptors() - expected:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


@pytest.fixture
def service():
    with PluginService() as made:
        made.load()
        made.instance("ram", name="warm", environment={}).close()  # starts the zygote
        yield made


def test_an_interrupt_while_the_plugin_is_loaded_leaves_no_socket(service, monkeypatch):
    before = _descriptors()

    def interrupted(_self: WorkerProcess, _seconds: float) -> None:
        raise Interrupt

    monkeypatch.setattr(WorkerProcess, "wait_for_offer", interrupted)
    for number in range(3):
        with pytest.raises(Interrupt):
            service.instance("ram", name=f"n{number}", environment={})
    monkeypatch.undo()

    _wait_until_only(before)
    assert service.instance("ram", name="n0", environment={}).get_children("ram://") == []


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_point_of_a_start_leaves_no_socket():
    with PluginService() as first:
        first.load()
        first.instance("ram", name="warm", environment={}).close()
    before = _descriptors()
    with PluginService() as service:
        service.load()
        for point in islice(points(), 0, None, _STRIDE):

            def start(name: str = f"n{point}") -> None:
                service.instance("ram", name=name, environment={}).close()

            if not interrupt(start, point=point):
                break
        assert point > 10 * _STRIDE
    _wait_until_only(before)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_point_of_the_end_of_an_unused_worker_leaves_no_socket(service):
    before = _descriptors()
    for point in points():
        made = service.instance("ram", name=f"n{point}", environment={})
        worker = worker_of(made)
        assert worker is not None
        if not interrupt(worker.leave, point=point):
            break
    assert point > 20
    del made, worker
    service.close()
    _wait_until_only(before)
