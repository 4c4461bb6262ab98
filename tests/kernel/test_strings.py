"""Tensors of strings go into kernels on the host, and come out."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import lib

KERNELS = "string_kernels"

LONG = b"x" * 100


def objects(*values):
    return np.array(values, object)


@pytest.mark.parametrize(
    "given",
    [
        objects(b"", b"a\0b", "é", b"eleven chars", LONG, "\udcff"),
        np.array([[b"ab", b"c"], [b"", LONG]]),
        np.array(["ä", "bc"]),
        np.array([], object),
        np.array([["a", "b"], ["c", "d"]]).T,
        np.array("scalar"),
        "text",
        LONG,
    ],
    ids=["objects", "bytes", "text", "empty", "transposed", "rank 0", "str", "long"],
)
def test_strings_go_in_and_come_out(given, device):
    values = np.asarray(given, object)
    flat = [
        each.encode("utf-8", "surrogateescape") if isinstance(each, str) else each
        for each in values.ravel()
    ]
    for _ in range(2):
        doubled = device.op("MtfDoubleStrings")(given)
        passed = device.op("MtfPassOn")(given, T="string")
        lengths = device.op("MtfMeasure")(given).to_numpy()

        assert doubled.dtype == passed.dtype == object
        assert doubled.shape == passed.shape == lengths.shape == values.shape
        assert doubled.ravel().tolist() == [each * 2 for each in flat]
        assert passed.ravel().tolist() == flat
        assert lengths.ravel().tolist() == [len(each) for each in flat]


def test_tensors_of_strings_leave_nothing_behind(device):
    held = lib.mtf_executor_held_objects(device.executor.native)
    for _ in range(1000):
        device.op("MtfDoubleStrings")(objects(LONG, b""))
        device.op("MtfPassOn")("a")
    assert lib.mtf_executor_held_objects(device.executor.native) == held
    assert lib.mtf_kernel_tensor_handles() == 0


def test_what_is_no_string_is_refused(device):
    double = device.op("MtfDoubleStrings")
    for wrong, told in (
        (objects("a", 1), "input 'x': expected str or bytes, found 'int' as element 1"),
        (objects("a", None), "found 'NoneType' as element 1"),
        (np.zeros(2), "string"),
        (1.5, "string"),
    ):
        with pytest.raises(InvalidArgumentError, match=told):
            double(wrong)
    with pytest.raises(InvalidArgumentError, match="uint8"):
        double(bytearray(b"bytes"))
