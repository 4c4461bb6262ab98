"""Jobs on a device; each checks the bytes that come back."""

from __future__ import annotations

import threading

import numpy as np

_TYPES = ("float32", "int64", "uint8", "complex64", "bool")


def arrays(device, dice):
    """Put arrays on the device, and get them back in each of three ways."""
    source = _any_array(dice)
    with device.put(source) as put:
        assert np.array_equal(put.to_numpy(), source)
        assert put.to_bytes() == source.tobytes()
        with put.copy_to(device) as copied:
            assert np.array_equal(copied.to_numpy(), source)


def exchange(device, dice):
    """Hand an array to numpy by DLPack, and let the consumer outlive the producer."""
    source = _any_array(dice)
    with device.put(source) as put:
        seen = np.from_dlpack(put.to_host())
    assert np.array_equal(seen, source)


def streams(device, dice):
    """Order work by streams, events, a timer and a callback."""
    size = dice.randrange(1, 1 << 15)
    data, back, called = dice.randbytes(size), bytearray(size), threading.Event()
    with (
        device.create_stream() as first,
        device.create_stream() as second,
        device.create_timer() as timer,
        device.allocate(size) as memory,
    ):
        timer.start(first)
        first.memcpy_htod(memory, data)
        event = first.record_event()
        second.wait_event(event)
        second.memcpy_dtoh(back, memory)
        second.add_callback(called.set)
        timer.stop(first)
        event.wait(60)
        second.block_until_done()
    assert called.is_set()
    assert back == data


def _any_array(dice):
    shape = tuple(dice.randrange(1, 40) for _ in range(dice.randrange(1, 4)))
    numbers = np.random.default_rng(dice.getrandbits(32)).integers(0, 100, shape)
    return numbers.astype(dice.choice(_TYPES))
