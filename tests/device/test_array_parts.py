"""Arrays as other arrays are: views of parts, lists, values, pickles, other element types."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from modular_tf.errors import InvalidArgumentError, NotFoundError
from modular_tf.service.service import PluginService

VALUES = np.arange(24, dtype="float32").reshape(2, 3, 4)
KINDS = ("device", "host", "unified")


# -- views -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        -1, (1, -3, 3), slice(1, None), slice(5, 9), (0, slice(1, 3)), (slice(0, 1), ...),
        np.int64(1), ...,
    ],
    ids=str,
)  # fmt: skip
def test_a_part_is_a_view(cpu, key):
    for kind in KINDS:
        there = cpu.put(VALUES, memory=kind)
        part = there[key]
        np.testing.assert_array_equal(part.to_numpy(), VALUES[key])
        part.copy_from(np.full(part.shape, -1, "float32"))
        expected = VALUES.copy()
        expected[key] = -1
        np.testing.assert_array_equal(there.to_numpy(), expected)


def test_another_shape_is_a_view(cpu):
    there = cpu.put(VALUES)

    for shape in ((24,), (4, 6), (2, -1), -1):
        view = there.reshape(shape)
        np.testing.assert_array_equal(view.to_numpy(), VALUES.reshape(shape))
        assert view.address == there.address
    assert there.reshape(6, 4).shape == (6, 4)
    assert cpu.empty((0, 3), "float32").reshape(3, -1).shape == (3, 0)
    for wrong in (
        (5, 5), (-1, 5), (-1, -1), (2, 3, 4, 0), (-24, -1), "ab", (-1, None),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match="shape"):
            there.reshape(wrong)


def test_what_is_not_there_or_would_need_a_copy_is_no_part(cpu):
    there, whole = cpu.put(VALUES), slice(None)
    for key in (2, -3, (0, 3), (0, 0, 0, 0), (whole,) * 4, (0, 0, 0, whole), (0, 0, 0, 0, ...)):
        with pytest.raises(IndexError):
            there[key]
    for key in (
        slice(0, 2, 2), slice(None, None, 0), slice("a", None), (slice(1, 2), 0), (..., 0), [0, 1],
        None, 0.5, "a", True, (0, False), np.True_, np.array([0, 1]),
        (0, np.array([True, False, True])),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match="to_numpy"):
            there[key]


def test_arrays_are_iterated_by_their_first_dimension(cpu):
    rows = [row.to_numpy() for row in cpu.put(VALUES)]

    np.testing.assert_array_equal(rows, VALUES)
    with pytest.raises(TypeError, match="without dimensions"):
        iter(cpu.put(np.float32(1)))


def test_others_wait_for_what_a_stream_does_with_a_view(cpu):
    for kind in ("device", "unified"):
        base = cpu.put(np.zeros(4, "uint8"), memory=kind)
        sibling, view = base[:], base[:]
        stream, gate = cpu.create_stream(), threading.Event()
        stream.add_callback(gate.wait)
        stream.memcpy_dtod(view.memory, cpu.put(np.full(4, 7, "uint8")).memory)
        threading.Timer(0.05, gate.set).start()
        for array in (sibling, base, view):
            assert np.from_dlpack(array).tolist() == [7] * 4


def test_pinned_memory_is_copied_and_seen_after_what_a_stream_writes_there(cpu):
    sevens = cpu.put(np.full(4, 7, "uint8"))
    for use in (lambda array: array.copy_to(cpu).to_numpy(), np.from_dlpack):
        pinned = cpu.put(np.zeros(4, "uint8"), memory="host")
        stream, gate = cpu.create_stream(), threading.Event()
        stream.add_callback(gate.wait)
        stream.memcpy_dtoh(pinned[:].memory, sevens.memory)
        threading.Timer(0.05, gate.set).start()
        assert use(pinned).tolist() == [7] * 4


@pytest.mark.parametrize("kind", ["device", "unified"])
def test_a_part_is_copied_over_one_that_overlaps(recording, kind):
    with recording.devices() as [device, _]:
        there = device.put(VALUES, memory=kind).reshape(24)
        expected = VALUES.reshape(24).copy()
        recording.clear()
        for to, start in [(slice(1, 20), slice(0, 19)), (slice(0, 19), slice(1, 20))]:
            there[to].copy_from(there[start])
            expected[to] = expected[start].copy()
        there.copy_from(there)
        assert recording.count("memcpy_dtod") == 0  # which plugins write as memcpy
        there[:4].copy_from(there[4:8])
        expected[:4] = expected[4:8]
        assert recording.count("memcpy_dtod") == 1
        np.testing.assert_array_equal(there.to_numpy(), expected)


# -- values ------------------------------------------------------------------------------------


def test_the_truth_of_an_array_is_that_of_its_only_element(cpu):
    for shape in ((), (1,), (1, 1, 1)):
        for value in (0, 1, -0.0, float("nan")):
            values = np.full(shape, value)
            assert bool(cpu.put(values)) is bool(values)
    for shape in ((0,), (2,), (1, 0), (2, 2)):
        with pytest.raises(InvalidArgumentError, match="neither true nor false"):
            bool(cpu.put(np.zeros(shape)))


def test_arrays_are_compared_as_objects(cpu):
    one, other = cpu.put([1.0]), cpu.put([1.0])

    assert one != other
    assert {one: 1, other: 2}[one] == 1
    assert one in [other, one]
    with pytest.raises(TypeError, match="container"):
        _ = 1.0 in one


def test_values_as_lists(cpu):
    import ml_dtypes

    for values in (
        VALUES, np.array(3, "int16"), np.array([True, False]), np.array([1 + 2j], "complex64"),
        np.array([1, 2.5], "float16"), np.zeros((2, 0), "int8"),
    ):  # fmt: skip
        assert cpu.put(values).tolist() == values.tolist()
    assert cpu.put(np.array([1, 2.5], ml_dtypes.bfloat16)).tolist() == [1.0, 2.5]
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        values = cpu.put(np.array([1, 7], dtype)).tolist()
        assert (values, type(values[0])) == ([1, 7], int)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([[1, 2], [3, 4]], "int32"),
        ((1, 2.5), "float32"),
        ([True, False], "bool"),
        ([1j, 2], "complex128"),
        ([], "float32"),
        (7, "int32"),
        ([np.float64(1), 2], "float64"),
        ([np.zeros(2, "int8"), np.ones(2, "int8")], "int8"),
    ],
)
def test_lists_become_arrays(cpu, given, dtype):
    there = cpu.put(given)

    assert there.dtype == dtype
    assert there.to_numpy().tolist() == np.asarray(given).tolist()


def test_lists_that_are_no_arrays_are_refused(cpu):
    within_itself = []
    within_itself.append(within_itself)
    ragged = [np.zeros(2), np.zeros(3)]
    for given in ([[1], [2, 3]], [1, [2]], [True, 1], [1 << 40], ragged):
        with pytest.raises(InvalidArgumentError):
            cpu.put(given)
    with pytest.raises(InvalidArgumentError, match="64 dimensions"):
        cpu.put(within_itself)
    for given in (["a"], [None], [object]):
        with pytest.raises(TypeError, match="numbers"):
            cpu.put(given)


def test_pickles_go_through_the_host_and_copies_stay_on_the_device(cpu):
    there = cpu.put(VALUES)
    back = pickle.loads(pickle.dumps(there))
    copies = copy.copy(there), copy.deepcopy(there)
    there.copy_from(np.zeros_like(VALUES))

    np.testing.assert_array_equal(np.from_dlpack(back), VALUES)
    np.testing.assert_array_equal(cpu.put(back).to_numpy(), VALUES)
    for other in copies:
        assert other.device is cpu
        np.testing.assert_array_equal(other.to_numpy(), VALUES)


def test_other_element_types(cpu):
    there = cpu.put([[0, 1], [2, 3]])
    for dtype in ("int32", np.float64, "bfloat16", "bool"):
        converted = there.astype(dtype)
        assert converted.device is cpu
        expected = [[0, 1], [1, 1] if dtype == "bool" else [2, 3]]
        assert converted.to_numpy().astype("int32").tolist() == expected
    with pytest.raises(InvalidArgumentError):
        there.astype("unknown")


def test_a_small_array_shows_its_values_where_it_need_not_wait(cpu):
    assert repr(cpu.put([1, 2])) == "<DeviceArray int32 (2,) on CPU:0: [1, 2]>"
    assert repr(cpu.put(np.zeros(17, "f4"))) == "<DeviceArray float32 (17,) on CPU:0>"

    go_on, stream = threading.Event(), cpu.create_stream()
    there = cpu.put([1, 2])
    stream.add_callback(go_on.wait)
    assert repr(there) == "<DeviceArray int32 (2,) on CPU:0>"
    go_on.set()
    stream.block_until_done()


def test_operators_need_kernels(cpu):
    there = cpu.put([1, 2])
    with pytest.raises(NotFoundError, match=r"AddV2.*plugin that has kernels"):
        _ = there + there
    with PluginService() as other:
        other.load()
        assert other.device("CPU:0").put([1]) != there  # objects, as ever
