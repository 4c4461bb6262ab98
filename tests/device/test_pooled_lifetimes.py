"""Memory that the host cuts: plugins that wait in their functions, or give memory twice."""

from __future__ import annotations

import threading
from ctypes import c_void_p

import pytest

from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.errors import InternalError
from tests.device.arenas import MIB


@pytest.mark.parametrize("slot", ["deallocate", "allocate"])
def test_a_callback_uses_memory_while_the_plugin_waits_for_it(lifetime, slot):
    """The plugin waits for its streams when a region goes back, and when another one is made."""
    lifetime.use_bfc_allocator()
    with lifetime.devices(MemorySettings(limit_bytes=6 * MIB)) as [device, _]:
        device.allocate(MIB).close()
        stream, looked = device.create_stream(), threading.Event()
        lifetime.synchronize_in(slot)
        lifetime.hold(slot)
        thread = threading.Thread(target=lambda: device.allocate(5 * MIB))
        thread.start()
        lifetime.wait_until_held(slot, thread)
        stream.add_callback(lambda: (device.allocator_stats(), looked.set()))
        lifetime.let_go(slot)

        assert looked.wait(60)
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("offset", [0, MIB])
@pytest.mark.parametrize(
    ("kind", "slot"), [("allocate", "allocate"), ("allocate_host", "host_memory_allocate")]
)
def test_memory_that_is_given_twice_is_refused_and_given_back_once(lifetime, kind, slot, offset):
    lifetime.use_bfc_allocator()
    with lifetime.devices() as [device, _]:
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
