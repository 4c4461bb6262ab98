"""What the model of a device takes for possible, and that the host device keeps to it."""

from __future__ import annotations

import pytest

from modular_tf.check.device.model import DeviceModel, Place


@pytest.fixture
def model():
    return DeviceModel()


@pytest.fixture
def place(model):
    return Place(model.allocate(), 0, 1)


def _found(model, place, stream=None):
    """Return what a read can find, as text; None for anything."""
    return _outcome(model, model.read(stream, place))


def _outcome(model, read):
    (found,) = model.possible(read)
    return None if found is None else "".join(sorted(map(chr, found)))


def test_fresh_memory_can_hold_anything_and_what_is_written_in_order_is_found(model, place):
    assert _found(model, place) is None
    model.write(None, place, b"a")
    model.write(None, place, b"b")
    assert _found(model, place) == "b"

    stream = model.create_stream()
    model.write(stream, place, b"c")
    model.write(stream, place, b"d")
    assert _found(model, place, stream) == "d"


def test_two_streams_race(model, place):
    model.write(None, place, b"a")
    held = model.read(model.create_stream(), place)
    model.write(model.create_stream(), place, b"b")

    assert _found(model, place, model.create_stream()) == "ab"
    assert _outcome(model, held) == "ab"


def test_a_dependency_orders(model, place):
    """An event stands for its last place."""
    first, second, third = (model.create_stream() for _ in range(3))
    event = model.create_event()
    model.write(None, place, b"a")
    model.record(first, event)
    model.write(first, place, b"b")
    model.record(first, event)
    model.depend(second, first)
    model.wait_for_event(third, event)
    model.write(first, place, b"c")

    assert _found(model, place, second) == _found(model, place, third) == "bc"


@pytest.mark.parametrize("way", ["passed_event", "passed_stream", "passed_all"])
def test_what_the_host_has_waited_for_is_over(model, place, way):
    stream, event = model.create_stream(), model.create_event()
    written = model.write(stream, place, b"a")
    model.record(stream, event)
    assert not model.is_done(written)
    assert not model.is_unused(place.memory)

    given = {"passed_event": [event], "passed_stream": [stream], "passed_all": []}
    getattr(model, way)(*given[way])

    assert model.is_done(written)
    assert model.is_unused(place.memory)
    assert _found(model, place) == "a"


def test_a_stream_that_was_destroyed_is_not_waited_for(model, place):
    stream = model.create_stream()
    written = model.write(stream, place, b"a")
    model.destroy_stream(stream)
    model.passed_all()

    assert not model.is_done(written)


def test_a_copy_takes_what_it_finds(model, place):
    other = Place(model.allocate(), 2, 1)
    model.write(None, other, b"x")
    model.copy(None, other, place)
    assert _found(model, other) is None  # of anything

    model.write(None, place, b"a")
    model.write(model.create_stream(), place, b"b")
    model.copy(None, other, place)
    assert _found(model, other) == "ab"


def test_what_cannot_be_is_reported_by_byte(model):
    memory = model.allocate()
    model.write(None, Place(memory, 0, 3), b"abc")
    read = model.read(None, Place(memory, 1, 2))

    assert model.mismatches(read, b"bc") == []
    assert model.mismatches(read, b"bd") == ["byte 1 is 0x64, expected 0x63"]
