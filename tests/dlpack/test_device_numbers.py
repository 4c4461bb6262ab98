"""How memory of a plugin's device is described."""

from __future__ import annotations

import uuid

import pytest

from modular_tf.abi.dlpack_devices import DeviceType
from modular_tf.device.arrays.dlpack_devices import (
    ORDINALS_OF_A_PLATFORM,
    DeviceNumbers,
    dlpack_device,
    parse_dlpack_types,
)
from modular_tf.errors import ConfigError, InvalidArgumentError


def test_two_platforms_never_share_a_number():
    numbers = DeviceNumbers()
    wanted = [
        (platform, ordinal)
        for platform in ("A", "B", "A", "C")
        for ordinal in (0, 1, ORDINALS_OF_A_PLATFORM - 1)
    ]
    given = {key: numbers.number(*key) for key in wanted}

    assert given["A", 0] == 0
    assert given["A", 1] == 1
    assert len(set(given.values())) == 9
    assert [numbers.number(*key) for key in wanted] == [given[key] for key in wanted]


@pytest.mark.parametrize("ordinal", [-1, ORDINALS_OF_A_PLATFORM])
def test_ordinals_outside_the_range_are_refused(ordinal):
    with pytest.raises(InvalidArgumentError, match="'A'"):
        DeviceNumbers().number("A", ordinal)


def test_memory_of_an_unknown_vendor_is_kdlextdev():
    platform = uuid.uuid4().hex
    kind, number = dlpack_device(platform, 3)

    assert kind == DeviceType.EXT_DEV
    assert number % ORDINALS_OF_A_PLATFORM == 3
    assert dlpack_device(platform, 3) == (kind, number)


def test_a_name_is_no_evidence():
    assert dlpack_device("CUDA", 0)[0] == DeviceType.EXT_DEV


@pytest.mark.parametrize("name", ["CUDA", "ROCM", "ONE_API", "TRN", "ASCEND"])
def test_the_user_may_say_what_it_is(name):
    (kind,) = parse_dlpack_types({"X": name}).values()

    assert dlpack_device("X", 2, kind=kind) == (DeviceType[name], 2)


def test_managed_memory_is_of_all_devices():
    assert dlpack_device("X", 2, kind=DeviceType.CUDA_MANAGED) == (DeviceType.CUDA_MANAGED, 0)


@pytest.mark.parametrize("name", ["OPENCL", "VULKAN", "METAL", "VPI", "WEB_GPU"])
def test_memory_behind_handles_is_refused_with_the_reason(name):
    with pytest.raises(ConfigError, match=rf"found '{name}', .* handle .*to_host\(\)"):
        parse_dlpack_types({"X": name})


@pytest.mark.parametrize("name", ["OPENCL", "METAL", "CPU", "CUDA_HOST", "TPU_HOST", "cuda", ""])
def test_what_memory_of_a_device_cannot_be(name):
    with pytest.raises(ConfigError, match=rf"expected one of CUDA, .* 'X', found '{name}'"):
        parse_dlpack_types({"A": "CUDA", "X": name})


def test_what_the_host_can_read_and_what_is_a_handle():
    assert {kind.name for kind in DeviceType if kind.is_host_readable} == {
        "CPU", "CUDA_HOST", "ROCM_HOST",
    }  # fmt: skip
    assert {kind.name for kind in DeviceType if kind.is_opaque} == {
        "OPENCL", "VULKAN", "METAL", "VPI", "WEB_GPU",
    }  # fmt: skip
