"""Starts of worker processes that are interrupted leave nothing open."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
from itertools import islice

import pytest

from modular_tf.isolation.worker import worker_of
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


def _named(service):
    return service.instance("ram", name="one", environment={})


def _shared(service):
    return service.shared_instance("ram", {"TENANT": "one"})


@_IN_FINALIZERS
@pytest.mark.parametrize("start", [_named, _shared])
@pytest.mark.parametrize("first", sampled(range(_STRIDE), [0]))
def test_an_interrupt_at_any_point_of_a_start_leaves_neither_sockets_nor_a_name_nor_room(
    service, start, first
):
    before = _open_now()
    with isolated(isolation="none", most_instances=1) as other:
        for point in islice(points(), first, None, _STRIDE):
            made = []
            if not interrupt(lambda: made.append(start(other)), point=point):  # noqa: B023
                break
            for one in made:
                one.close()
            start(other).close()
        assert point > 10 * _STRIDE
    wait_until(lambda: _open_now() <= before)


@_IN_FINALIZERS
def test_an_interrupt_while_a_socket_is_sent_leaves_it_to_nobody(service, monkeypatch):
    """The thread that sends it to the watcher ends after the start that it belongs to."""

    def raise_interrupt(*_):
        raise Interrupt

    sends, given_up, threads = socket.send_fds, threading.Event(), []

    def send(connection, buffers, descriptors):
        sends(connection, buffers, descriptors)
        if buffers == [b"c"]:  # the watcher has its end
            threads.append(threading.current_thread())
            os.kill(os.getpid(), signal.SIGUSR1)
            given_up.wait()

    before = _open_now()
    monkeypatch.setattr(socket, "send_fds", send)
    previous = signal.signal(signal.SIGUSR1, raise_interrupt)
    try:
        with pytest.raises(Interrupt):
            _named(service)
    finally:
        signal.signal(signal.SIGUSR1, previous)
        given_up.set()
    (thread,) = threads
    thread.join()
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
