"""How memory of a plugin's device is described."""

from __future__ import annotations

import pytest

from modular_tf.abi.dlpack_devices import DeviceType
from modular_tf.device.arrays.dlpack_devices import (
    ORDINALS_OF_A_PLATFORM,
    dlpack_device,
    parse_dlpack_types,
)
from modular_tf.errors import ConfigError, InvalidArgumentError


def test_two_platforms_of_unknown_vendors_never_share_a_number():
    wanted = [
        (platform, ordinal)
        for platform in ("CUDA", "B", "CUDA", "C")  # a name is no evidence of what it is
        for ordinal in (0, 1, ORDINALS_OF_A_PLATFORM - 1)
    ]
    given = {key: dlpack_device(*key) for key in wanted}

    assert {kind for kind, _ in given.values()} == {DeviceType.EXT_DEV}
    assert len({number for _, number in given.values()}) == 9
    for key, (_, number) in given.items():
        assert number % ORDINALS_OF_A_PLATFORM == key[1]
    assert [dlpack_device(*key) for key in wanted] == [given[key] for key in wanted]
    for outside in (-1, ORDINALS_OF_A_PLATFORM):
        with pytest.raises(InvalidArgumentError, match="'A'"):
            dlpack_device("A", outside)


@pytest.mark.parametrize(
    ("name", "number"),
    [("CUDA", 2), ("ROCM", 2), ("ONE_API", 2), ("TRN", 2), ("ASCEND", 2), ("CUDA_MANAGED", 0)],
)
def test_the_user_may_say_what_it_is(name, number):
    """Managed memory is of all devices."""
    (kind,) = parse_dlpack_types({"X": name}).values()

    assert dlpack_device("X", 2, kind=kind) == (DeviceType[name], number)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("OPENCL", r".* handle .*to_host\(\)"),
        ("CUDA_HOST", ""),
        ("cuda", ""),
    ],
)
def test_what_memory_of_a_device_cannot_be(name, reason):
    with pytest.raises(ConfigError, match=rf"expected one of CUDA, .* 'X', found '{name}'{reason}"):
        parse_dlpack_types({"A": "CUDA", "X": name})
