"""Inputs that a caller gives away with a call."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.errors import ClosedError, InvalidArgumentError, ModularTFError

KERNELS = "hostile_kernels"


@pytest.fixture
def given(device):
    return device.put(np.array([1, 2, 3], "float32"))


@pytest.mark.parametrize("case", ["none", "report", "throw", "unset"])
def test_what_is_donated_is_closed_whether_the_kernel_fails_or_not(case, device, given):
    try:
        device.op("MtfHostile")(given, case=case, donate=[given])
    except ModularTFError:
        assert case != "none"
    assert given.closed


def test_what_is_donated_stays_open_where_no_kernel_was_called(device, given):
    for wrong in ({"case": 1}, {"nonsense": 1}):
        with pytest.raises(InvalidArgumentError):
            device.op("MtfHostile")(given, donate=[given], **wrong)
    assert given.to_numpy().tolist() == [1, 2, 3]


def test_what_others_view_is_not_overwritten(device, given):
    view = np.from_dlpack(given)
    result = device.op("MtfHostile")(given, case="none", donate=[given])

    assert given.closed
    assert result.address != view.ctypes.data
    assert view.tolist() == [1, 2, 3]


def test_what_cannot_be_donated_is_refused(device, given):
    other, values = device.put(np.ones(3, "float32")), given.to_numpy()

    for donate, text in (
        (given, r"takes a list of arrays; found one array: give donate=\[array\]"),
        ([other], "<DeviceArray .*> is no input of this call"),
        (
            [values],
            r"'ndarray' object is no input of this call; an array is put there by device.put",
        ),
        (7, "takes a list"),
    ):
        with pytest.raises(InvalidArgumentError, match=text) as raised:
            device.op("MtfHostile")(given, donate=donate)
        assert "array(" not in str(raised.value), "arrays are not printed"
    assert not given.closed
    assert not other.closed


def test_the_stream_of_a_call_is_one_of_the_device(device, given):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(ClosedError, match="the Stream was closed"):
        device.op("MtfHostile")(given, case="none", stream=stream)
    with pytest.raises(TypeError, match="expected a Stream of CPU:0, found 5"):
        device.op("MtfHostile")(given, case="none", stream=5)
