"""How memory of a plugin's device is described."""

from __future__ import annotations

import uuid

import pytest

from modular_tf.abi.dlpack_devices import DeviceType
from modular_tf.device.dlpack_numbers import (
    ORDINALS_OF_A_PLATFORM,
    DeviceNumbers,
    dlpack_device,
)
from modular_tf.errors import InvalidArgumentError


def test_two_platforms_never_share_a_number():
    numbers = DeviceNumbers()
    given = {
        (platform, ordinal): numbers.number(platform, ordinal)
        for platform in ("A", "B", "A", "C")
        for ordinal in (0, 1, ORDINALS_OF_A_PLATFORM - 1)
    }

    assert given["A", 0] == 0
    assert given["A", 1] == 1
    assert len(set(given.values())) == 9
    assert {key: numbers.find(number) for key, number in given.items()} == {
        key: key for key in given
    }


def test_numbers_that_nobody_has_lead_nowhere():
    numbers = DeviceNumbers()

    assert numbers.find(0) is None
    assert numbers.find(-1) is None


@pytest.mark.parametrize("ordinal", [-1, ORDINALS_OF_A_PLATFORM])
def test_ordinals_outside_the_range_are_refused(ordinal):
    with pytest.raises(InvalidArgumentError, match="'A'"):
        DeviceNumbers().number("A", ordinal)


def test_memory_of_an_unknown_vendor_is_kdlextdev():
    platform = uuid.uuid4().hex
    kind, number = dlpack_device(platform, 3)

    assert kind == DeviceType.EXT_DEV
    assert number % ORDINALS_OF_A_PLATFORM == 3
    assert dlpack_device(platform, 3, configured=DeviceType.EXT_DEV) == (kind, number)


def test_a_name_is_no_evidence():
    assert dlpack_device("CUDA", 0)[0] == DeviceType.EXT_DEV


def test_host_readable_memory_is_the_hosts():
    assert dlpack_device("X", 3, is_host_readable=True, configured=DeviceType.CUDA) == (1, 0)


@pytest.mark.parametrize("kind", ["CUDA", "ROCM", "ONE_API", "CUDA_MANAGED"])
def test_the_user_may_say_what_it_is(kind):
    assert dlpack_device("X", 2, configured=DeviceType[kind]) == (DeviceType[kind], 2)


@pytest.mark.parametrize("kind", ["OPENCL", "METAL", "CPU", "CUDA_HOST"])
def test_what_memory_of_a_device_cannot_be(kind):
    with pytest.raises(InvalidArgumentError, match=kind):
        dlpack_device("X", 0, configured=DeviceType[kind])


def test_what_the_host_can_read_and_what_is_a_handle():
    assert {kind.name for kind in DeviceType if kind.is_host_readable} == {
        "CPU", "CUDA_HOST", "ROCM_HOST",
    }  # fmt: skip
    assert {kind.name for kind in DeviceType if kind.is_opaque} == {
        "OPENCL", "VULKAN", "METAL", "VPI", "WEB_GPU",
    }  # fmt: skip
