"""What a tensor may say of memory, and what it refuses to say."""

from __future__ import annotations

import gc
import weakref
from itertools import product

import pytest

from modular_tf.native.tensor import Tensor
from tests.dlpack.memory import CPU, FLOAT32, Memory, tensor_of


def test_it_says_what_it_was_told():
    owner = object()
    tensor = Tensor(4096, (2, 3), (6, 2), FLOAT32, (12, 7), owner, read_only=True)

    assert (tensor.address, tensor.shape, tensor.strides) == (4096, (2, 3), (6, 2))
    assert (tensor.ndim, tensor.size, tensor.nbytes) == (2, 6, 24)
    assert (tensor.dlpack_dtype, tensor.dlpack_device) == (FLOAT32, (12, 7))
    assert tensor.owner is owner
    assert tensor.read_only
    assert not tensor.is_copied


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((), ()),
        ((5,), (1,)),
        ((2, 3, 4), (12, 4, 1)),
        ((2, 3, 4, 5, 6), (360, 120, 30, 6, 1)),
        ((1,) * 64, (1,) * 64),
    ],
)
def test_strides_are_those_of_c_order_where_none_are_given(shape, strides):
    """The owner lives as long as the tensor, however many dimensions that has."""
    memory = Memory(4)
    watched = memory.watch()
    tensor = Tensor(memory.address, shape, None, FLOAT32, CPU, memory)
    del memory

    assert tensor.strides == strides
    assert watched() is not None
    del tensor
    assert watched() is None


@pytest.mark.parametrize(
    ("dtype", "padded", "n_bytes"),
    [
        ((0, 4, 1), False, 3),
        ((0, 4, 1), True, 5),
        ((17, 4, 2), False, 5),
        ((15, 6, 1), False, 4),
        ((2, 32, 4), False, 80),
        ((6, 8, 1), False, 5),
    ],
)
def test_elements_of_less_than_a_byte_share_bytes_unless_padded(dtype, padded, n_bytes):
    assert Tensor(64, (5,), None, dtype, CPU, None, is_padded=padded).nbytes == n_bytes


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"address": 0}, "NULL"),
        ({"address": -1}, "negative"),
        ({"address": 1 << 64}, "larger"),
        ({"shape": (1 << 64,)}, "larger"),
        ({"dlpack_device": (1, 1 << 32)}, "larger"),
        ({"shape": (-1,)}, "negative"),
        ({"shape": (2**40, 2**40)}, "larger"),
        ({"shape": (1,) * 65}, "64"),
        ({"strides": (1, 1)}, "strides"),
        ({"strides": (1 << 61,)}, "out of the address space"),
        ({"strides": (-16,)}, "out of the address space"),
        ({"shape": (2, 2), "strides": (1 << 60, 1 << 60)}, "out of the address space"),
        ({"dlpack_dtype": (0, 4, 1), "strides": (1 << 61,)}, "out of the address space"),
        ({"address": (1 << 64) - 8}, "out of the address space"),
        ({"dlpack_dtype": (18, 32, 1)}, "code 18"),
        ({"dlpack_dtype": (2, 0, 1)}, "0 bits"),
        ({"dlpack_dtype": (2, 32, 0)}, "0 lanes"),
        ({"dlpack_dtype": (2, 256, 1)}, "256"),
        ({"dlpack_dtype": (-1, 32, 1)}, "-1"),
        ({"dlpack_device": (22, 0)}, "22 is unknown"),
        ({"dlpack_device": (8, 1)}, r"\(8, 1\), kDLMetal, is a handle .* host memory"),
    ],
)
def test_impossible_descriptions_are_refused(wrong, said):
    arguments = {
        "address": 64,
        "shape": (4,),
        "strides": None,
        "dlpack_dtype": FLOAT32,
        "dlpack_device": CPU,
        "owner": None,
    }

    with pytest.raises(ValueError, match=said):
        Tensor(**(arguments | wrong))


WIDTHS = {
    **{code: set(range(1, 256)) for code in (0, 1, 3)},
    2: {16, 32, 64, 128},
    4: {16},
    5: {32, 64, 128},
    6: {8},
    **{code: {8} for code in range(7, 15)},
    15: {6},
    16: {6},
    17: {4},
}


def test_a_tensor_is_described_once():
    tensor = tensor_of([1, 2])

    with pytest.raises(ValueError, match="already"):
        tensor.__init__(64, (1,), None, FLOAT32, CPU, None)
    assert tensor.shape == (2,)


@pytest.mark.parametrize("padded", [False, True])
def test_elements_have_the_width_of_their_type(padded):
    """Integers and handles may have any."""
    for code, bits in product(WIDTHS, range(1, 256)):
        arguments = 64, (4,), None, (code, bits, 1), CPU, None
        if bits in WIDTHS[code]:
            assert Tensor(*arguments, is_padded=padded).dlpack_dtype == (code, bits, 1)
        else:
            with pytest.raises(ValueError, match=f"code {code}: expected .* bits, found {bits}$"):
                Tensor(*arguments, is_padded=padded)


@pytest.mark.parametrize(
    ("shape", "strides"), [((1, 2), (1 << 61, 1)), ((0, 3), (1 << 61, -5)), ((5, 1 << 61, 0), None)]
)
def test_strides_that_lead_nowhere_may_be_anything(shape, strides):
    tensor = tensor_of([1, 2], shape, strides=strides)

    assert tensor.strides[0] == 0
    assert memoryview(tensor).nbytes == tensor.nbytes


def test_on_a_device_an_address_is_what_the_plugin_says():
    at_the_end = Tensor((1 << 64) - 1, (4,), None, FLOAT32, (12, 0), None)

    assert at_the_end.address == (1 << 64) - 1


@pytest.mark.parametrize("use", ["shape", "address", "__dlpack__", "__dlpack_device__"])
def test_a_subclass_that_forgot_to_describe_is_told(use):
    class Forgetful(Tensor):
        def __init__(self):
            pass

    with pytest.raises(ValueError, match="__init__"):
        getattr(Forgetful(), use)()


def test_a_cycle_through_the_owner_is_collected():
    class Owner:
        pass

    owner = Owner()
    owner.tensor = Tensor(64, (1,), None, FLOAT32, CPU, owner)
    watched = weakref.ref(owner)
    del owner

    gc.collect()
    assert watched() is None
