"""Operators of arrays, lists as inputs and arrays as outputs: operations by other ways."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.errors import ClosedError, InvalidArgumentError, NotFoundError

KERNELS = "host_kernels"


def test_operators_are_operations_from_either_side(device):
    values = np.arange(6, dtype="float32").reshape(2, 3)
    there = device.put(values)

    for found, expected in [
        (there + there, values + values),
        (there + 1, values + 1),
        (1.5 + there, 1.5 + values),
        (there + values, values + values),
        (np.float32(0) + (values + there), values + values),
        (there @ there.to_numpy().T, values @ values.T),
    ]:
        np.testing.assert_array_equal(found.to_numpy(), expected)
        assert found.device is device
    assert isinstance(np.add(values, there), np.ndarray)  # a function of numpy's
    for compute, op in [
        (lambda: there - there, "Sub"),
        (lambda: 2**there, "Pow"),
        (lambda: there**2, "Pow"),
        (lambda: 2 // there, "FloorDiv"),
        (lambda: 2 % there, "FloorMod"),
        (lambda: 2 / there, "RealDiv"),
        (lambda: values < there, "Greater"),
        (lambda: values[0] @ there[0], "BatchMatMulV2"),
    ]:
        with pytest.raises(NotFoundError, match=f"{op}: no kernel"):
            compute()


def test_an_operation_is_made_once_for_each_label(device):
    assert device.op("AddV2") is device.op("AddV2")
    assert device.op("AddV2") is not device.op("AddV2", label="other")
    with pytest.raises(InvalidArgumentError, match="the label of an operation"):
        device.op("AddV2", label=[])


def test_lists_are_inputs(device):
    add = device.op("AddV2")

    assert add([[1, 2], [3, 4]], 1).tolist() == [[2, 3], [4, 5]]
    assert add(device.put([1.5]), [1, 2]).dtype == "float32"
    assert device.run("AddV2", [1.5], [1, 2]).tolist() == [2.5, 3.5]
    with pytest.raises(InvalidArgumentError, match="unequal lengths"):
        add([[1], [2, 3]], 1)
    endless = []
    endless += [endless, endless]
    for op, inputs in (("AddV2", [endless] * 2), ("StringUpper", [endless])):
        with pytest.raises((InvalidArgumentError, TypeError), match=r"more than 64|expected"):
            device.run(op, *inputs)


def test_an_output_goes_where_it_shall(device):
    add = device.op("AddV2")
    out = device.put([0, 0])
    address = out.address

    assert add([1, 2], [3, 4], out=out) is out
    assert device.run("AddV2", out, out, out=out) is out
    assert (out.tolist(), out.address) == ([8, 12], address)
    for unfit in (device.put([0]), device.put([0.0, 0.0]), [0, 0]):
        with pytest.raises(InvalidArgumentError):
            add([1, 2], [3, 4], out=unfit)


def test_an_output_that_cannot_go_anywhere_costs_no_donated_input(device):
    relu = device.op("Relu")
    there, closed = device.put([-1.0, 2.0]), device.put([0.0, 0.0])
    closed.close()

    for out, error in [(closed, ClosedError), ([0.0], InvalidArgumentError)]:
        with pytest.raises(error):
            relu(there, donate=[there], out=out)
    with pytest.raises(InvalidArgumentError, match="out is donated"):
        device.run("Relu", there, donate=[there], out=there)
    assert there.tolist() == [-1.0, 2.0]


def test_memory_that_a_view_sees_is_not_donated(device):
    relu = device.op("Relu")
    there = device.put([-1.0, 2.0])
    view = there[1:]

    assert relu(there, donate=[there]).tolist() == [0.0, 2.0]
    assert view.tolist() == [2.0]
    whole = device.put([-1.0, 2.0])
    part = whole[:]
    relu(part, donate=[part])
    assert whole.tolist() == [-1.0, 2.0]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_operations_run_with_as_many_inputs_as_they_have(device, count):
    there = device.put([1.0])

    for _ in range(3):  # prepared ones too
        assert device.run("AddV2", there, there).tolist() == [2.0]
        with pytest.raises(InvalidArgumentError, match="KN-043"):
            device.run("AddV2", *[there] * count)
