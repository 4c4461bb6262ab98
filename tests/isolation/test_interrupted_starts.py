"""Starts of worker processes that are interrupted, or meet a shortage, leave nothing open."""

from __future__ import annotations

import errno
import gc
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.isolation import told_workers
from modular_tf.isolation.told_workers import applications
from modular_tf.isolation.worker_process import WorkerProcess
from modular_tf.service.service import PluginService
from modular_tf.service.workers import worker_of
from tests.fixtures.interrupts import Interrupt, interrupt, points

if TYPE_CHECKING:
    import socket

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


def test_a_worker_starts_where_no_socket_is_left_to_tell_others(service, monkeypatch):
    def none_left(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(told_workers, "_teller", told_workers._Teller())
    monkeypatch.setattr(told_workers.socket, "socket", none_left)
    told_workers.tell_others(list)
    monkeypatch.undo()

    one = service.instance("ram", name="one", environment={})
    assert one.get_children("ram://") == []
    assert [w.instance for told in applications() for w in told.workers if w.instance == "one"]
