"""What the reference kernels compute, beside numpy: a function for each case.

As a program, which keeps a driver in a process of its own, it runs the cases that OpenCL has.
Arguments: types of matrices, n for each n-th type of the other cases, and the libraries.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from modular_tf import PluginService
from modular_tf.errors import InvalidArgumentError, UnimplementedError

NUMBERS = (
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
SHAPES = ((), (1,), (7,), (3, 4), (0,), (0, 4), (4, 0), (2, 3, 4, 5))
MATRICES = (
    (1, 1, 1), (3, 4, 5), (65, 33, 129), (70, 600, 70), (0, 4, 5), (3, 0, 5), (3, 4, 0),
)  # fmt: skip
TURNS = tuple(itertools.product((False, True), repeat=2))


def numbers(shape, dtype, seed=0):
    generator = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") or dtype == "bool" else -9
    if dtype.startswith("float"):
        return generator.uniform(low, 9, shape).astype(dtype)
    return np.asarray(generator.integers(low, 2 if dtype == "bool" else 9, shape), dtype)


def agree(array, device, expected, atol=1e-4):
    found, expected = array.to_numpy(), np.asarray(expected)
    assert array.device is device
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=atol)


def products_of_matrices(device, types=("float32", "float64")):
    for dtype, (rows, depth, columns) in itertools.product(types, MATRICES):
        a, b = numbers((rows, depth), dtype), numbers((depth, columns), dtype, 1)
        for turn_a, turn_b in TURNS:
            one = np.ascontiguousarray(a.T) if turn_a else a
            other = np.ascontiguousarray(b.T) if turn_b else b
            turns = {"transpose_a": turn_a, "transpose_b": turn_b}
            product = device.op("MatMul")(one, other, **turns)
            agree(product, device, a @ b, atol=1e-5 * (1 + depth))


def casts(device, step=1):
    """The driver compiles a kernel for each pair."""
    types = (*NUMBERS, "bool")
    for source, target in list(itertools.product(types, types))[::step]:
        for shape in ((5,), (0, 3)):
            x = numbers(shape, source)
            if target.startswith("u") and source.startswith("float"):
                x = abs(x)  # numpy has no answer for negative ones
            agree(device.op("Cast")(x, DstT=target), device, x.astype(target))


def elements(device, step=1):
    """Each type has a kernel for each operation, which the driver compiles; steps have one each."""
    ops = itertools.cycle(("AddV2", "Relu", "Add"))
    for dtype in NUMBERS[::step]:
        for op in ("AddV2", "Relu", "Add") if step == 1 else [next(ops)]:
            if op == "Add" and dtype in {"uint16", "uint32", "uint64"}:
                op = "AddV2"  # noqa: PLW2901  (which has these types)
            for shape in SHAPES:
                x, y = numbers(shape, dtype), numbers(shape, dtype, 1)
                if op == "Relu":
                    agree(device.op(op)(x), device, np.maximum(x, np.zeros((), dtype)))
                else:
                    agree(device.op(op)(x, y), device, x + y)


def numbers_out_of_range(device, step=1):
    """They become the nearest integer."""
    x = np.array([1e30, -1e30, np.inf, -np.inf], "float32")
    for target in ("int8", "uint32", "int32", "uint8", "int64")[::step]:
        low, high = np.iinfo(target).min, np.iinfo(target).max
        found = device.op("Cast")(x, DstT=target).to_numpy()
        assert found.tolist() == [high, low, high, low], target


def donated_inputs(device):
    """Relu overwrites what is donated and nothing else."""
    values = numbers((64, 64), "float32")
    other, given = device.put(values), device.put(values)
    address = given.address
    agree(device.op("Relu")(other), device, np.maximum(values, 0))
    agree(other, device, values)
    result = device.op("Relu")(given, donate=(given,))
    assert (result.address, given.closed) == (address, True)
    agree(result, device, np.maximum(values, 0))


def work_after_work(device):
    weights = numbers((32, 32), "float64") / 64
    x = expected = numbers((32, 32), "float64", 1)
    there = device.put(weights)
    for _ in range(20):
        sums = device.op("AddV2")(device.op("MatMul")(x, there), x)
        x = device.op("Relu")(sums, donate=(sums,))
        expected = np.maximum(expected @ weights + expected, 0)
    agree(x, device, expected)


def refusals_of_matrices(device):
    """They name both shapes, and the next call works."""
    x = numbers((2, 3), "float32")
    for wrong, text in (
        (x, r"a is \[2,3\], b is \[2,3\]"),
        (numbers((3,), "float32"), "b must be a matrix"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            device.op("MatMul")(x, wrong)
    agree(device.op("MatMul")(x, x, transpose_b=True), device, x @ x.T)


def broadcasting(device):
    pairs = (
        ((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((), (3,)), ((2, 1), (2, 0)),
        ((4, 1, 3), (5, 1)), ((2, 1, 3, 1), (4, 1, 5)),
    )  # fmt: skip
    for dtype, (one, other) in itertools.product(NUMBERS, pairs):
        x, y = numbers(one, dtype), numbers(other, dtype, 1)
        agree(device.op("AddV2")(x, y), device, x + y)
        agree(device.op("AddV2")(y, x), device, x + y)
    x, y = numbers((2, 3), "float32"), numbers((4,), "float32")
    with pytest.raises(InvalidArgumentError, match=r"\[2,3\] and \[4\] cannot be broadcast"):
        device.op("AddV2")(x, y)


def reductions(device):
    for op, reduced in (("Sum", np.sum), ("Max", np.max)):
        for shape in ((), (5,), (3, 4), (2, 3, 4, 5)):
            n = len(shape)
            axes = [axes for k in range(n + 1) for axes in itertools.combinations(range(n), k)]
            for axis, dtype, keep in itertools.product(axes, NUMBERS, (False, True)):
                x = numbers(shape, dtype)
                index = np.array(axis, "int64" if keep else "int32")
                expected = np.asarray(reduced(x, axis, keepdims=keep), dtype)
                agree(device.op(op)(x, index, keep_dims=keep), device, expected)
    none, first = numbers((0, 4), "float32"), np.array([-2], "int32")
    agree(device.op("Sum")(none, first), device, np.zeros(4, "float32"))
    agree(device.op("Max")(none, first), device, np.full(4, -np.inf, "float32"))
    for index, text in (
        ([2], "no dimension 2 in an input of 2"),
        ([0, -2], "dimension 0 is named twice"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            device.op("Sum")(numbers((2, 3), "float32"), np.array(index, "int32"))


def large_sums(device):
    """They are precise."""
    x = np.full(1 << 20, 0.1, "float32")
    total = device.op("Sum")(x, np.array([0], "int32")).to_numpy()
    assert total == np.float32(x.astype("float64").sum())


def equal_shapes(device):
    """OpenCL adds no others."""
    with pytest.raises(UnimplementedError, match=r"x is \[2,3\], y is \[3\]"):
        device.op("AddV2")(numbers((2, 3), "float32"), numbers((3,), "float32"))


def streams_of_other_devices(device, service, *libraries):
    service.load("host_device")
    ones = np.ones(3, "float32")
    with PluginService() as other:
        other.load(*libraries)
        for stream, error, text in (
            (service.device("CPU:0").create_stream(), InvalidArgumentError, "CPU:0"),
            (other.device("OPENCL:0").create_stream(), InvalidArgumentError, "service"),
            (3, TypeError, "found 3"),
        ):
            with pytest.raises(error, match=text):
                device.op("AddV2")(ones, ones, stream=stream)
    agree(device.op("AddV2")(ones, ones, stream=device.create_stream()), device, ones + ones)


OF_BOTH = (donated_inputs, work_after_work, refusals_of_matrices)
OF_THE_HOST = (
    products_of_matrices, casts, elements, numbers_out_of_range, broadcasting, reductions,
    large_sums,
)  # fmt: skip


def main(types, step, *libraries):
    with PluginService() as service:
        service.load(*libraries)
        device = service.device("OPENCL:0")
        products_of_matrices(device, types.split(","))
        casts(device, int(step) ** 3)
        elements(device, int(step))
        numbers_out_of_range(device, int(step))
        for case in (*OF_BOTH, equal_shapes):
            case(device)
        streams_of_other_devices(device, service, *libraries)
    print("all agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
