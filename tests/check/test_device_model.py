"""What the model of a device takes for possible, and that the host device keeps to it."""

from __future__ import annotations

import pytest

from modular_tf.check.device.model import DeviceModel, Place
from tests.check.building import DEFECT_VARIABLE, defective_plugin

_SEEDS = range(6)
_STEPS, _MANY_STEPS = 250, 600
_SHORT = "SE-205"


@pytest.fixture
def model():
    return DeviceModel()


@pytest.fixture
def place(model):
    return Place(model.allocate(), 0, 1)


def _outcome(model, read):
    (found,) = model.possible(read)
    return found


def test_fresh_memory_can_hold_anything(model, place):
    assert _outcome(model, model.read(None, place)) is None


def test_a_read_finds_what_the_host_has_written(model, place):
    model.write(None, place, b"a")
    model.write(None, place, b"b")

    assert _outcome(model, model.read(None, place)) == {ord("b")}


def test_a_stream_goes_in_order(model, place):
    stream = model.create_stream()
    model.write(stream, place, b"a")
    model.write(stream, place, b"b")

    assert _outcome(model, model.read(stream, place)) == {ord("b")}


def test_two_streams_race(model, place):
    model.write(None, place, b"a")
    model.write(model.create_stream(), place, b"b")

    assert _outcome(model, model.read(model.create_stream(), place)) == {ord("a"), ord("b")}


def test_a_later_write_can_come_before_a_read_that_is_still_held(model, place):
    model.write(None, place, b"a")
    read = model.read(model.create_stream(), place)
    model.write(model.create_stream(), place, b"b")

    assert _outcome(model, read) == {ord("a"), ord("b")}


def test_a_write_after_a_read_that_is_over_changes_nothing(model, place):
    model.write(None, place, b"a")
    stream = model.create_stream()
    read = model.read(stream, place)
    model.passed_stream(stream)
    model.write(model.create_stream(), place, b"b")

    assert _outcome(model, read) == {ord("a")}


def test_a_dependency_orders(model, place):
    first, second = model.create_stream(), model.create_stream()
    model.write(None, place, b"a")
    model.write(first, place, b"b")
    model.depend(second, first)
    model.write(first, place, b"c")

    assert _outcome(model, model.read(second, place)) == {ord("b"), ord("c")}


def test_an_event_stands_for_its_last_place(model, place):
    first, second, event = model.create_stream(), model.create_stream(), model.create_event()
    model.record(first, event)
    model.write(first, place, b"a")
    model.record(first, event)
    model.wait_for_event(second, event)
    model.write(second, place, b"b")

    assert _outcome(model, model.read(second, place)) == {ord("b")}


@pytest.mark.parametrize("way", ["event", "stream", "all"])
def test_what_the_host_has_waited_for_is_over(model, place, way):
    stream, event = model.create_stream(), model.create_event()
    written = model.write(stream, place, b"a")
    model.record(stream, event)
    assert not model.is_done(written)
    assert not model.is_unused(place.memory)

    wait = {
        "event": lambda: model.passed_event(event),
        "stream": lambda: model.passed_stream(stream),
        "all": model.passed_all,
    }
    wait[way]()

    assert model.is_done(written)
    assert model.is_unused(place.memory)
    assert _outcome(model, model.read(None, place)) == {ord("a")}


def test_a_stream_that_was_destroyed_is_not_waited_for(model, place):
    stream = model.create_stream()
    written = model.write(stream, place, b"a")
    model.destroy_stream(stream)
    model.passed_all()

    assert not model.is_done(written)


def test_a_copy_takes_what_it_finds(model, place):
    other = Place(model.allocate(), 2, 1)
    model.write(None, place, b"a")
    model.write(model.create_stream(), place, b"b")
    model.copy(None, other, place)

    assert _outcome(model, model.read(None, other)) == {ord("a"), ord("b")}


def test_a_copy_of_anything_is_anything(model, place):
    other = Place(model.allocate(), 0, 1)
    model.write(None, other, b"a")
    model.copy(None, other, place)

    assert _outcome(model, model.read(None, other)) is None


def test_copies_in_a_circle_bring_nothing_new(model, place):
    other = Place(model.allocate(), 0, 1)
    model.write(None, place, b"a")
    model.write(None, other, b"b")
    model.copy(model.create_stream(), other, place)
    model.copy(model.create_stream(), place, other)

    assert _outcome(model, model.read(None, place)) == {ord("a"), ord("b")}


def test_what_cannot_be_is_told_by_byte(model):
    memory = model.allocate()
    model.write(None, Place(memory, 0, 3), b"abc")
    read = model.read(None, Place(memory, 1, 2))

    assert model.mismatches(read, b"bc") == []
    assert model.mismatches(read, b"bd") == ["byte 1 is 0x64, expected 0x63"]


@pytest.mark.parametrize("seed", _SEEDS)
def test_the_host_device_keeps_to_the_model(seed, run_python):
    child = run_python(_RUN, defective_plugin("device"), seed, _STEPS)

    assert child.stdout == "it keeps to the model\n"


def test_a_defect_shows_in_the_model(run_python):
    """Copies of five bytes leave the last one out."""
    child = run_python(
        _RUN, defective_plugin("device"), 0, _MANY_STEPS, env={DEFECT_VARIABLE: _SHORT}
    )

    assert "expected" in child.stdout


_RUN = """
    import random, sys
    from modular_tf.check.device.sequence_steps import STEPS, perform
    from modular_tf.check.device.session import DeviceSession
    from modular_tf.check.expectation import Deviation
    from modular_tf.check.outcome import Pass
    from modular_tf.check.sequences import random_program
    from modular_tf.check.target import Target

    session = DeviceSession(Target(sys.argv[1], "device", Pass.RAW, ordinal=0))
    try:
        perform(session.access, random_program(STEPS, random.Random(sys.argv[2]), int(sys.argv[3])))
        print("it keeps to the model")
    except Deviation as deviation:
        print(deviation.found)
    session.close()
"""
