"""The reference kernels through operations, beside numpy; drivers stay in child processes."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.contrib.built_plugin import built_plugin
from tests.contrib.opencl_plugin import ON_POCL
from tests.fixtures.matrices import sampled

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.children import PythonRunner

_PRELUDE = dedent("""
    import sys
    import numpy as np
    import modular_tf
    from modular_tf import PluginService

    NUMBERS = ("float32", "float64", "int8", "int16", "int32", "int64",
               "uint8", "uint16", "uint32", "uint64")
    SHAPES = ((), (1,), (7,), (3, 4), (0,), (0, 4), (4, 0), (2, 3, 4, 5))

    def numbers(shape, dtype, seed=0):
        generator = np.random.default_rng(seed)
        low = 0 if dtype.startswith("u") or dtype == "bool" else -9
        if dtype.startswith("float"):
            return generator.uniform(low, 9, shape).astype(dtype)
        return np.asarray(generator.integers(low, 2 if dtype == "bool" else 9, shape), dtype)

    def agree(array, expected, atol=1e-4):
        found = array.to_numpy()
        assert array.device is device
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), (found, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=atol)

    service = PluginService()
    service.load(*sys.argv[2:])
    device = service.device(sys.argv[1])
""")


@pytest.fixture
def on_host(run_python: PythonRunner) -> Callable[[str], str]:
    """Run code with the kernels of the host; `device` is there, `agree` compares with numpy."""

    def run(code: str) -> str:
        library = built_plugin("host_kernels")
        return run_python(_PRELUDE + dedent(code), "CPU:0", "host_device", library).stdout

    return run


@pytest.fixture
def on_opencl(run_python: PythonRunner) -> Callable[[str], str]:
    """Run code with the kernels in OpenCL C, likewise."""

    def run(code: str) -> str:
        libraries = built_plugin("opencl_device"), built_plugin("opencl_kernels")
        code = _PRELUDE + dedent(code)
        return run_python(code, "OPENCL:0", *libraries, env=ON_POCL, timeout=300).stdout

    return run


@pytest.fixture(params=["on_host", "on_opencl"])
def on_device(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Run code on each of the two."""
    run: Callable[[str], str] = request.getfixturevalue(request.param)
    return run


_PRODUCTS_OF = """
    matmul = device.op("MatMul")
    for dtype in {types}:
        for rows, depth, columns in (
            (1, 1, 1), (3, 4, 5), (65, 33, 129), (70, 600, 70), (0, 4, 5), (3, 0, 5), (3, 4, 0),
        ):
            a, b = numbers((rows, depth), dtype), numbers((depth, columns), dtype, 1)
            for turn_a in (False, True):
                for turn_b in (False, True):
                    one = np.ascontiguousarray(a.T) if turn_a else a
                    other = np.ascontiguousarray(b.T) if turn_b else b
                    product = matmul(one, other, transpose_a=turn_a, transpose_b=turn_b)
                    agree(product, a @ b, atol=1e-5 * (1 + depth))
"""


def test_products_of_matrices(on_host: Callable[[str], str]) -> None:
    on_host(_PRODUCTS_OF.format(types=("float32", "float64")))


@pytest.mark.parametrize("dtype", sampled(["float32", "float64"], ["float32"]))
def test_products_of_matrices_in_opencl(dtype: str, on_opencl: Callable[[str], str]) -> None:
    on_opencl(_PRODUCTS_OF.format(types=(dtype,)))


def test_each_element_by_itself(on_device: Callable[[str], str]) -> None:
    on_device("""
        for dtype in NUMBERS:
            for shape in SHAPES:
                x, y = numbers(shape, dtype), numbers(shape, dtype, 1)
                agree(device.op("AddV2")(x, y), np.asarray(x + y))
                agree(device.op("Relu")(x), np.asarray(np.maximum(x, np.zeros((), dtype))))
                if dtype not in ("uint16", "uint32", "uint64"):
                    agree(device.op("Add")(x, y), np.asarray(x + y))
    """)


_EACH_CAST_OF = """
    from itertools import islice, product

    cast, types = device.op("Cast"), (*NUMBERS, "bool")
    for source, target in islice(product(types, types), 0, None, {step}):
        for shape in ((5,), (0, 3)):
            x = numbers(shape, source)
            if target.startswith("u") and source.startswith("float"):
                x = abs(x)  # numpy has no answer for negative ones
            agree(cast(x, DstT=target), x.astype(target))
"""


def test_casts_from_each_type_to_each(on_host: Callable[[str], str]) -> None:
    on_host(_EACH_CAST_OF.format(step=1))


@pytest.mark.parametrize("step", sampled([1, 5], [5]), ids=["all", "each type twice"])
def test_casts_in_opencl(step: int, on_opencl: Callable[[str], str]) -> None:
    """The driver compiles a kernel for each pair: a step of 5 has each type twice at least."""
    on_opencl(_EACH_CAST_OF.format(step=step))


def test_numbers_out_of_range_become_the_nearest_integer(on_device: Callable[[str], str]) -> None:
    on_device("""
        x = np.array([1e30, -1e30, np.inf, -np.inf], "float32")
        for target in ("int8", "uint8", "int32", "uint32", "int64"):
            low, high = np.iinfo(target).min, np.iinfo(target).max
            expected = np.array([high, low, high, low], target)
            assert (device.op("Cast")(x, DstT=target).to_numpy() == expected).all(), target
    """)


def test_broadcasting(on_host: Callable[[str], str]) -> None:
    on_host("""
        add = device.op("AddV2")
        pairs = (((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((), (3,)), ((2, 1), (2, 0)),
                 ((4, 1, 3), (5, 1)), ((2, 1, 3, 1), (4, 1, 5)))
        for dtype in NUMBERS:
            for one, other in pairs:
                x, y = numbers(one, dtype), numbers(other, dtype, 1)
                agree(add(x, y), x + y)
                agree(add(y, x), x + y)
    """)


def test_reductions(on_host: Callable[[str], str]) -> None:
    on_host("""
        import itertools

        for op, reduced in (("Sum", np.sum), ("Max", np.max)):
            for shape in ((), (5,), (3, 4), (2, 3, 4, 5)):
                axes = itertools.chain.from_iterable(
                    itertools.combinations(range(len(shape)), n) for n in range(len(shape) + 1)
                )
                for axis in axes:
                    for dtype, keep in itertools.product(NUMBERS, (False, True)):
                        x = numbers(shape, dtype)
                        index = np.array(axis, "int64" if keep else "int32")
                        expected = reduced(x, axis, keepdims=keep)
                        agree(
                            device.op(op)(x, index, keep_dims=keep),
                            np.asarray(expected, dtype),
                        )
        none, first = numbers((0, 4), "float32"), np.array([-2], "int32")
        agree(device.op("Sum")(none, first), np.zeros(4, "float32"))
        agree(device.op("Max")(none, first), np.full(4, -np.inf, "float32"))
    """)


def test_large_sums_are_precise(on_host: Callable[[str], str]) -> None:
    on_host("""
        x = np.full(1 << 20, 0.1, "float32")
        total = device.op("Sum")(x, np.array([0], "int32")).to_numpy()
        assert total == np.float32(x.astype("float64").sum())
    """)


def test_relu_overwrites_what_is_donated_and_nothing_else(on_device: Callable[[str], str]) -> None:
    on_device("""
        values = numbers((64, 64), "float32")
        kept, given = device.put(values), device.put(values)
        address = given.address
        agree(device.op("Relu")(kept), np.maximum(values, 0))
        agree(kept, values)
        result = device.op("Relu")(given, donate=(given,))
        assert (result.address, given.closed) == (address, True)
        agree(result, np.maximum(values, 0))
    """)


def test_work_follows_work(on_device: Callable[[str], str]) -> None:
    on_device("""
        matmul, add, relu = (device.op(name) for name in ("MatMul", "AddV2", "Relu"))
        weights = numbers((32, 32), "float64") / 64
        x = expected = numbers((32, 32), "float64", 1)
        there = device.put(weights)
        for _ in range(20):
            sums = add(matmul(x, there), x)
            x = relu(sums, donate=(sums,))
            expected = np.maximum(expected @ weights + expected, 0)
        agree(x, expected)
    """)


def test_threads_share_an_operation(on_device: Callable[[str], str]) -> None:
    on_device("""
        from concurrent.futures import ThreadPoolExecutor

        matmul = device.op("MatMul")

        def work(seed):
            a, b = numbers((40, 30), "float32", seed), numbers((30, 20), "float32", seed + 100)
            for _ in range(10):
                agree(matmul(a, b), a @ b)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
    """)


def test_a_refusal_names_both_shapes_and_the_next_call_works(
    on_device: Callable[[str], str],
) -> None:
    on_device("""
        matmul, x = device.op("MatMul"), numbers((2, 3), "float32")
        for wrong, told in (
            (x, "a is [2,3], b is [2,3]"), (numbers((3,), "float32"), "b must be a matrix"),
        ):
            try:
                matmul(x, wrong)
            except modular_tf.errors.InvalidArgumentError as error:
                assert told in str(error), error
            else:
                raise AssertionError(told)
        agree(matmul(x, x, transpose_b=True), x @ x.T)
    """)


@pytest.mark.parametrize(
    ("index", "told"),
    [("[2]", "no dimension 2 in an input of 2"), ("[0, -2]", "dimension 0 is named twice")],
)
def test_reductions_refuse_wrong_dimensions(
    on_host: Callable[[str], str], index: str, told: str
) -> None:
    on_host(f"""
        try:
            device.op("Sum")(numbers((2, 3), "float32"), np.array({index}, "int32"))
        except modular_tf.errors.InvalidArgumentError as error:
            assert {told!r} in str(error), error
        else:
            raise AssertionError
    """)


def test_shapes_that_do_not_fit_are_refused(on_host: Callable[[str], str]) -> None:
    on_host("""
        try:
            device.op("AddV2")(numbers((2, 3), "float32"), numbers((4,), "float32"))
        except modular_tf.errors.InvalidArgumentError as error:
            assert "[2,3] and [4] cannot be broadcast" in str(error), error
        else:
            raise AssertionError
    """)


def test_opencl_adds_equal_shapes_only(on_opencl: Callable[[str], str]) -> None:
    on_opencl("""
        try:
            device.op("AddV2")(numbers((2, 3), "float32"), numbers((3,), "float32"))
        except modular_tf.errors.UnimplementedError as error:
            assert "x is [2,3], y is [3]" in str(error), error
        else:
            raise AssertionError
    """)


def test_a_stream_of_another_device_is_refused(on_opencl: Callable[[str], str]) -> None:
    on_opencl("""
        service.load("host_device")
        other = PluginService()
        other.load(*sys.argv[2:])
        ones, wrong = np.ones(3, "float32"), modular_tf.errors.InvalidArgumentError
        for stream, error, told in (
            (service.device("CPU:0").create_stream(), wrong, "CPU:0"),
            (other.device("OPENCL:0").create_stream(), wrong, "service"),
            (3, TypeError, "found 3"),
        ):
            try:
                device.op("AddV2")(ones, ones, stream=stream)
            except error as found:
                assert told in str(found), found
            else:
                raise AssertionError(told)
        agree(device.op("AddV2")(ones, ones, stream=device.create_stream()), ones + ones)
    """)


def test_kernels_get_parts_of_arrays_aligned(on_device: Callable[[str], str]) -> None:
    on_device("""
        from modular_tf.kernel.running import KernelRunner

        addresses, run = [], KernelRunner.run
        def noted(self, kernel, inputs, *others):
            addresses.extend(each.address for each in inputs)
            return run(self, kernel, inputs, *others)
        KernelRunner.run = noted

        values = numbers((40,), "float32")
        whole = device.put(values)
        for start in (0, 1, 16, 17):
            part = whole[start:]
            agree(device.run("Relu", part, stream=device.context.compute), values[start:].clip(0))
        assert len(addresses) == 4
        assert all(address % 64 == 0 for address in addresses), addresses
        assert addresses[0] == whole.address
    """)
