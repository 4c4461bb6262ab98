"""Memory that the host cuts: plugins that wait in their functions, or give memory twice."""

from __future__ import annotations

import threading
from ctypes import c_void_p

import pytest

from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.errors import InternalError
from tests.device.arenas import MIB


@pytest.fixture
def device(lifetime):
    lifetime.use_bfc_allocator()
    with lifetime.devices() as [first, _]:
        yield first


def calling(stream, function):
    """Have a stream call a function; return what tells that it has, and what it raised."""
    done, raised = threading.Event(), []

    def call():
        try:
            function()
        except BaseException as error:
            raised.append(error)
            raise
        finally:
            done.set()

    stream.add_callback(call)
    return done, raised


@pytest.mark.parametrize("kind", ["allocate", "allocate_host"])
def test_a_callback_frees_memory_while_an_allocation_waits_for_it(lifetime, device, kind):
    slot = "allocate" if kind == "allocate" else "host_memory_allocate"
    held, stream = [getattr(device, kind)(MIB)], device.create_stream()
    lifetime.synchronize_in(slot)
    lifetime.hold(slot)
    thread = threading.Thread(target=lambda: held.append(getattr(device, kind)(16 * MIB)))
    thread.start()
    lifetime.wait_until_held(slot)
    freed, raised = calling(stream, lambda: held.pop(0).close())
    lifetime.let_go(slot)

    assert freed.wait(60)
    thread.join(60)
    assert raised == []
    assert len(held) == 1


def test_a_callback_allocates_while_unused_regions_go_back(lifetime):
    lifetime.use_bfc_allocator()
    with lifetime.devices(MemorySettings(limit_bytes=6 * MIB)) as [device, _]:
        device.allocate(MIB).close()
        stream = device.create_stream()
        lifetime.synchronize_in("deallocate")
        lifetime.hold("deallocate")
        thread = threading.Thread(target=lambda: device.allocate(5 * MIB))
        thread.start()
        lifetime.wait_until_held("deallocate", thread)
        looked, raised = calling(stream, device.allocator_stats)
        lifetime.let_go("deallocate")

        assert looked.wait(60)
        thread.join(60)
        assert raised == []


@pytest.mark.parametrize("offset", [0, MIB])
@pytest.mark.parametrize(
    ("kind", "slot"), [("allocate", "allocate"), ("allocate_host", "host_memory_allocate")]
)
def test_memory_that_is_given_twice_is_refused_and_given_back_once(
    lifetime, device, kind, slot, offset
):
    held = getattr(device, kind)(2 * MIB)
    lifetime.give_next(c_void_p(held.address + offset))

    with pytest.raises(InternalError, match="rule SE-135") as caught:
        getattr(device, kind)(4 * MIB)

    assert caught.value.rule == "SE-135"
    assert "LIFETIME:0" in caught.value.message
    if not offset:
        assert slot in caught.value.message
    again = getattr(device, kind)(4 * MIB)
    assert again.address != held.address
