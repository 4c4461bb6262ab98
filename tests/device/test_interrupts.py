"""An interrupt at any point: what the plugin works with is there, and all ends once."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from contextlib import suppress
from functools import partial

import pytest

from modular_tf.device.platform import load_device_platform
from modular_tf.errors import InternalError
from tests.device.conftest import device_of
from tests.device.recording import Callbacks
from tests.fixtures.interrupts import Interrupt, interrupt, points

SIZE = 4096


@pytest.fixture(autouse=True)
def _interrupts_in_finalizers_are_expected(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)


class Buffer(bytearray):
    """A buffer that can be watched."""


OPERATIONS = {
    "memcpy_htod": lambda s, m, b: s.memcpy_htod(m, b),
    "memcpy_dtoh": lambda s, m, b: s.memcpy_dtoh(b, m),
    "memcpy_dtod": lambda s, m, b: s.memcpy_dtod(m, m),
    "memset": lambda s, m, b: s.memset(m, 1),
}


@pytest.mark.parametrize("is_full", [False, True], ids=["a batch", "a full batch"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_plugin_has_is_held(lifetime, monkeypatch, name, is_full):
    if is_full:
        monkeypatch.setattr("modular_tf.device.streams.stream._BATCH_BYTES", 1)
    with lifetime.devices() as [device, _]:
        for point in points():
            stream, memory, buffer = device.create_stream(), device.allocate(SIZE), Buffer(SIZE)
            if is_full:
                stream.memset(memory, 1)
            lifetime.hold("work")
            go_on = interrupt(partial(OPERATIONS[name], stream, memory, buffer), point=point)
            watched = weakref.ref(buffer)
            has_buffer = name in {"memcpy_dtoh", "memcpy_htod"}
            del memory, buffer
            assert not (has_buffer and not is_full and lifetime.outstanding and watched() is None)
            lifetime.let_go("work")
            stream.block_until_done()
            assert watched() is None
            assert lifetime.alive("device memory") == 0
            if not go_on:
                break
        assert point > 1


@pytest.mark.parametrize("end", [False, True], ids=["a wait", "the end of a stream"])
def test_an_interrupted_wait_lets_nothing_go(lifetime, end):
    with lifetime.devices() as [device, _]:
        for point in points():
            streams, memory, buffer = [device.create_stream()], device.allocate(SIZE), Buffer(SIZE)
            lifetime.hold("work")
            streams[0].memcpy_dtoh(buffer, memory)
            watched = weakref.ref(buffer)
            del memory, buffer
            soon = threading.Timer(0.01, lifetime.let_go, ["work"])
            soon.start()
            go_on = interrupt(streams.clear if end else streams[0].block_until_done, point=point)
            assert not (lifetime.outstanding and watched() is None)
            soon.join()
            device.synchronize()
            for stream in streams:
                stream.block_until_done()
                assert watched() is None
                assert lifetime.alive("device memory") == 0
            if not go_on:
                break


def test_an_interrupted_wait_at_the_end_of_a_stream_does_not_lose_it(lifetime, monkeypatch):
    def interrupted(*_):
        raise Interrupt

    with lifetime.devices() as [device, _]:
        stream = device.create_stream()
        stream.memset(device.allocate(SIZE), 1)
        monkeypatch.setattr("modular_tf.device.streams.stream._is_done", interrupted)
        stream.close()
        assert lifetime.alive("stream") == 0


def test_an_interrupted_end_of_host_memory_is_finished_by_a_close(lifetime, monkeypatch):
    def interrupted(_thread):
        raise Interrupt

    platform = load_device_platform(lifetime.library, plugin_name="lifetime")
    memory = device_of(platform).allocate_host(SIZE)
    view = memory.view
    memory.close()
    platform.close()
    with monkeypatch.context() as patched:
        patched.setattr("modular_tf.device.device_core.start_thread", interrupted)
        del memory, view
    assert lifetime.alive("device") == 1
    platform.close()
    assert lifetime.left == {}


CREATED = {
    "stream": lambda d: d.create_stream(),
    "timer": lambda d: d.create_timer(),
    "device memory": lambda d: d.allocate(SIZE),
    "host memory": lambda d: d.allocate_host(SIZE),
    "unified memory": lambda d: d.allocate_unified(SIZE),
}


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("kind", CREATED)
def test_what_nobody_got_is_given_back(lifetime, kind, pooled):
    if pooled:
        lifetime.use_bfc_allocator()
    with lifetime.devices() as [device, _]:
        made = []
        for point in points():
            if not interrupt(lambda: made.append(CREATED[kind](device)), point=point):
                break
            made.clear()
            assert device.executor.is_idle
        assert point > 1


def test_a_device_that_nobody_got_is_destroyed(lifetime):
    for point in points():
        platform = load_device_platform(lifetime.library, plugin_name="lifetime")
        go_on = interrupt(lambda: device_of(platform).allocate(SIZE), point=point)  # noqa: B023
        device_of(platform).allocate(SIZE).close()
        platform.close()
        assert lifetime.left == {}
        if not go_on:
            break
    assert point > 10


@pytest.mark.parametrize("what", ["device", "platform"])
def test_an_interrupted_close_is_finished_by_the_next(lifetime, what):
    for point in points():
        platform = load_device_platform(lifetime.library, plugin_name="lifetime")
        device = device_of(platform)
        stream, memory = device.create_stream(), device.allocate(SIZE)
        lifetime.hold("work")
        stream.memset(memory, 1)
        stream.add_callback(lambda: None)
        soon = threading.Timer(0.01, lifetime.let_go, ["work"])
        soon.start()
        close = platform.close if what == "platform" else device.executor.close
        go_on = interrupt(close, point=point)
        soon.join()
        platform.close()
        assert lifetime.left == {}
        assert stream.closed
        if not go_on:
            break
    assert point > 10


@pytest.mark.parametrize("plugin", ["host_device", "recording"])
def test_an_interrupted_callback_is_called_or_forgotten(request, plugin):
    if plugin == "recording":
        request.getfixturevalue(plugin).call_back(Callbacks.AT_ONCE)
    device = request.getfixturevalue({"recording": "device"}.get(plugin, plugin))
    for point in points():
        stream, called = device.create_stream(), []
        more = interrupt(lambda: stream.add_callback(lambda: called.append(1)), point=point)  # noqa: B023
        with suppress(InternalError):  # the interrupt, where it came in the callback
            stream.block_until_done()
        end = time.monotonic() + 60
        while stream._callbacks is not None and stream._callbacks._functions:
            assert time.monotonic() < end, point
        if not more:
            assert called
            break
    assert point
