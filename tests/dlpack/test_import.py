"""What is taken from producers, and what is not."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from modular_tf.dlpack import from_dlpack
from modular_tf.native.tensor import consume
from tests.dlpack.foreign import DELETER, Producer, Versioned, content_of, name_of
from tests.dlpack.memory import tensor_of


@pytest.mark.parametrize(
    ("versioned", "used"), [(True, "used_dltensor_versioned"), (False, "used_dltensor")]
)
def test_a_capsule_is_consumed_once_and_freed_once(versioned, used):
    producer = Producer(versioned=versioned)
    tensor = consume(producer.capsule)

    assert name_of(producer.capsule) == used
    assert tensor.address == producer.address
    assert memoryview(tensor).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="consumed"):
        consume(producer.capsule)
    assert producer.deleted == 0
    del tensor
    assert producer.deleted == 1


@pytest.mark.parametrize("thing", [None, 3, object()])
def test_other_things_are_no_capsules(thing):
    with pytest.raises(ValueError, match="expected a DLPack capsule"):
        consume(thing)


def test_missing_strides_mean_compact():
    producer = Producer(ndim=3)
    producer.shape[:] = [2, 1, 2]
    producer.dl.strides = None

    assert consume(producer.capsule).strides == (2, 2, 1)


def test_an_offset_becomes_part_of_the_address():
    producer = Producer()
    producer.dl.byte_offset = 8
    producer.shape[0] = 2
    tensor = consume(producer.capsule)

    assert tensor.address == producer.address + 8
    assert content_of(tensor.__dlpack__(max_version=(1, 0)), Versioned).dl_tensor.byte_offset == 0


@pytest.mark.parametrize(
    ("taken", "given", "is_read_only", "is_copied"),
    [(1 << 40, 0, False, False), (1, 1, True, False), (2, 0, False, True)],
    ids=["unknown", "read-only", "a copy for us is none for others"],
)
def test_flags_are_taken_and_given(taken, given, is_read_only, is_copied):
    producer = Producer()
    producer.managed.minor = 99
    producer.managed.flags = taken
    producer.managed.deleter = DELETER()
    tensor = consume(producer.capsule)

    assert (tensor.read_only, tensor.is_copied) == (is_read_only, is_copied)
    assert content_of(tensor.__dlpack__(max_version=(1, 0)), Versioned).flags == given
    del tensor
    assert producer.deleted == 0, "the deleter may be missing"


def _set(**fields):
    def change(producer):
        for name, value in fields.items():
            setattr(producer.managed if name == "major" else producer.dl, name, value)

    return change


def _set_extent(name, value):
    return lambda producer: getattr(producer, name).__setitem__(0, value)


REFUSED = {
    "elements at NULL": (_set(data=None), "NULL"),
    "an unknown type": (_set(code=18), "code 18"),
    "an unknown device": (_set(device_type=22), "22 is unknown"),
    "a handle": (_set(device_type=4), r"\(4, 0\), kDLOpenCL, is a handle .* device='cpu'"),
    "a padded FP6 that says 8": (_set(code=15, bits=8), "code 15: expected 6 bits, found 8"),
    "somebody's kDLExtDev": (_set(device_type=12), "kDLExtDev"),
    "negative dimensions": (_set(ndim=-1), "dimensions"),
    "too many dimensions": (_set(ndim=65), "dimensions"),
    "no shape": (_set(shape=None), "no shape"),
    "a negative shape": (_set_extent("shape", -4), "negative"),
    "strides that wrap": (_set_extent("strides", 1 << 62), "address space"),
    "an offset that wraps": (_set(byte_offset=(1 << 64) - 8), "address space"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_capsules_are_left_to_their_destructor(name):
    change, said = REFUSED[name]
    producer = Producer()
    change(producer)

    with pytest.raises(BufferError, match=said):
        consume(producer.capsule)
    assert name_of(producer.capsule) == "dltensor_versioned"
    assert producer.deleted == 0


@pytest.mark.parametrize("major", [0, 2])
@pytest.mark.parametrize("has_deleter", [True, False])
def test_a_tensor_of_another_major_version_is_given_back(major, has_deleter):
    """All that is known of its layout is where the deleter is."""
    producer = Producer()
    producer.managed.major = major
    if not has_deleter:
        producer.managed.deleter = DELETER()
    producer.dl.ndim, producer.dl.shape = 7, None

    with pytest.raises(BufferError, match=rf"found {major}\.3; .*max_version=\(1, 3\)"):
        consume(producer.capsule)
    assert producer.deleted == has_deleter
    assert name_of(producer.capsule) == "used_dltensor_versioned"


@pytest.mark.parametrize("major", [1, 2])
def test_a_tensor_is_given_back_once_whatever_the_collector_consumes_meanwhile(major):
    """It may run where the tensor or an error is made, and a finalizer consume the capsule too."""
    taken = []

    def take():
        with suppress(BufferError, ValueError):
            taken.append(consume(producer.capsule))

    class Garbage:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            take()

    thresholds = gc.get_threshold()
    for n_allocations in range(1, 10):
        producer = Producer()
        producer.managed.major = major
        gc.collect()
        Garbage()
        try:
            raise KeyError  # an error within another is an object from the start
        except KeyError:
            gc.set_threshold(gc.get_count()[0] + n_allocations)
            take()
            gc.set_threshold(*thresholds)
        gc.collect()
        assert len(taken) == (major == 1)
        taken.clear()
        assert producer.deleted == 1


@pytest.mark.parametrize("device_type", [1, 3, 11, 13])
def test_host_pinned_and_managed_memory_has_no_number(device_type):
    """There are producers that number it; what leaves here follows the interface."""
    producer = Producer()
    producer.dl.device_type, producer.dl.device_id = device_type, 3
    tensor = consume(producer.capsule)

    assert tensor.dlpack_device == (device_type, 0)
    managed = content_of(tensor.__dlpack__(max_version=(1, 0)), Versioned)
    assert managed.dl_tensor.device_id == 0


def test_our_own_kdlextdev_comes_back():
    tensor = tensor_of([1], dlpack_device=(12, 5))

    for request in ({}, {"max_version": (1, 0)}):
        back = consume(tensor.__dlpack__(**request))
        assert (back.dlpack_device, back.address) == ((12, 5), tensor.address)


def test_what_a_legacy_producer_did_not_say_is_taken_for_read_only():
    producer = Producer(versioned=False)
    tensor = consume(producer.capsule)

    assert tensor.read_only
    assert memoryview(tensor).readonly
    assert content_of(tensor.__dlpack__(max_version=(1, 0)), Versioned).flags == 1
    assert name_of(tensor.__dlpack__()) == "dltensor"


class Speaker:
    """A producer object, of a version of the protocol."""

    def __init__(self, known=("max_version", "dl_device", "copy", "stream"), device=(1, 0)):
        self.known = known
        self.device = device
        self.calls = []
        self.producer = Producer()

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        self.calls.append(asked)
        if unknown := set(asked) - set(self.known):
            raise TypeError(f"unexpected keywords {unknown}")
        return self.producer.capsule


VERSION = {"max_version": (1, 3)}


@pytest.mark.parametrize(
    ("speaker", "wishes", "calls"),
    [
        ({}, {}, [VERSION]),
        ({"device": (2, 0)}, {}, [{**VERSION, "stream": None}]),  # orders it by that stream
        (
            {},
            {"device": "cpu", "copy": False},
            [{**VERSION, "dl_device": (1, 0), "copy": False}],
        ),
        ({"known": ()}, {}, [VERSION, {}]),
    ],
    ids=["host", "device", "wishes", "an old producer"],
)
def test_from_dlpack_asks_for_our_version_and_old_producers_for_less(speaker, wishes, calls):
    asked = Speaker(**speaker)

    assert from_dlpack(asked, **wishes).address == asked.producer.address
    assert asked.calls == calls


def test_old_producers_cannot_be_asked_for_a_copy():
    with pytest.raises(BufferError, match=r"before 1\.0"):
        from_dlpack(Speaker(known=()), copy=True)


def test_from_dlpack_names_what_it_cannot_use():
    with pytest.raises(TypeError, match="'int' objects"):
        from_dlpack(3)
    with pytest.raises(ValueError, match="'gpu'"):
        from_dlpack(Speaker(), device="gpu")
