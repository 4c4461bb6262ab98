"""numpy, torch, jax and tvm-ffi take our tensors where they lie, and we take theirs."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from modular_tf.abi.dlpack_elements import ELEMENT_TYPES, by_name
from modular_tf.dlpack import element_type, from_dlpack, to_dlpack
from modular_tf.native.tensor import Tensor, consume, import_by_table
from tests.dlpack.memory import CPU, FLOAT32, Memory, tensor_of


def released(tensor) -> bool:
    if tensor._n_exports:
        gc.collect()
    return tensor._n_exports == 0


def test_they_see_our_memory_where_it_lies(consumer):
    tensor = tensor_of([1, 2, 3, 4, 5, 6], (2, 3))
    taken = consumer.take(tensor)

    assert consumer.address(taken) == tensor.address
    assert tuple(taken.shape) == (2, 3)
    assert tensor._n_exports == 1
    del taken
    assert released(tensor)


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=lambda element: element.name)
def test_every_element_type_is_taken_or_refused_without_a_leak(consumer, element):
    memory = Memory(64)
    tensor = Tensor(memory.address, (8,), None, element.dtype, CPU, memory)
    try:
        taken = consumer.take(tensor)
    except Exception:  # noqa: BLE001
        assert consumer.elements is not None
        assert element.name not in consumer.elements
    else:
        assert consumer.address(taken) == memory.address
        del taken
    assert released(tensor)


def test_they_keep_our_memory(consumer):
    tensor = tensor_of([1, 2])
    watched = tensor.owner.watch()
    taken = consumer.take(tensor)
    del tensor
    gc.collect()

    assert watched() is not None
    del taken
    gc.collect()
    assert watched() is None


def test_scalars_and_empty_tensors_are_taken(consumer):
    assert tuple(consumer.take(tensor_of([3], ())).shape) == ()
    assert tuple(consumer.take(Tensor(0, (2, 0), None, FLOAT32, CPU, None)).shape) == (2, 0)


def test_we_take_theirs_where_it_lies(consumer):
    array = consumer.take(np.arange(64, dtype=np.float32))
    tensor = from_dlpack(array)

    assert tensor.address == consumer.address(array)
    assert element_type(tensor).name == "float32"
    assert memoryview(tensor).tolist() == list(range(64))
    del array
    gc.collect()
    assert memoryview(tensor)[63] == 63


def test_there_and_back_and_there_again(consumer):
    tensor = tensor_of([1, 2, 3])
    back = from_dlpack(consumer.take(from_dlpack(consumer.take(tensor))))

    assert back.address == tensor.address
    del back
    assert released(tensor)


def test_an_unknown_device_is_refused_or_a_handle(consumer):
    tensor = tensor_of([1], dlpack_device=(12, 0))
    if consumer.name == "tvm_ffi":
        assert str(consumer.take(tensor).device) == "ext_dev:0"
    else:
        with pytest.raises(Exception, match=r"(?i)device|dlpack|privateuse"):
            consumer.take(tensor)
    assert released(tensor)


@pytest.mark.parametrize("shift", [0, 1], ids=["all", "without the last"])
def test_numpy_sees_every_stride(shift):
    memory = tensor_of(range(24)).owner
    array = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 24).from_address(memory.address))
    shaped = array.reshape(2, 3, 4)
    for view in (shaped.T, shaped[:, ::2], shaped[..., 1], np.broadcast_to(array[:4], (3, 4))):
        wanted = view[: view.shape[0] - shift]
        back = np.from_dlpack(from_dlpack(wanted))
        np.testing.assert_array_equal(back, wanted)
        assert back.size == 0 or back.strides == wanted.strides


def test_numpy_keeps_what_is_read_only():
    array = np.arange(3.0)
    array.flags.writeable = False

    assert from_dlpack(array).read_only
    assert not np.from_dlpack(from_dlpack(array)).flags.writeable
    assert not from_dlpack(np.arange(3.0)).read_only
    assert np.from_dlpack(from_dlpack(np.arange(3.0))).flags.writeable


def test_numpy_may_ask_for_the_host_and_for_copies():
    tensor = tensor_of([1, 2])

    assert np.from_dlpack(tensor, device="cpu").ctypes.data == tensor.address
    assert np.from_dlpack(tensor, copy=False).ctypes.data == tensor.address
    copy = np.from_dlpack(tensor, copy=True)
    assert copy.ctypes.data != tensor.address
    assert copy.tolist() == [1, 2]


def test_we_may_ask_numpy_for_a_copy():
    array = np.arange(3.0)
    copy = from_dlpack(array, copy=True)

    assert copy.is_copied
    assert copy.address != array.ctypes.data
    assert memoryview(copy).tolist() == [0, 1, 2]


def test_what_numpy_cannot_say_is_refused_and_freed():
    array = np.arange(3.0)
    capsule = array.__dlpack__(max_version=(1, 0))
    tensor = consume(capsule)

    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(tensor, device="cpu", copy=False).__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="consumed"):
        consume(capsule)


def test_torch_is_taken_by_its_table():
    import torch

    theirs = torch.arange(6.0).reshape(2, 3).t()
    tensor = import_by_table(theirs)

    assert (tensor.address, tensor.shape, tensor.strides) == (theirs.data_ptr(), (3, 2), (1, 3))


def test_torch_gets_ours_by_its_table():
    import torch

    tensor = tensor_of([1, 2])
    theirs = to_dlpack(tensor, torch.Tensor)

    assert type(theirs) is torch.Tensor
    assert (theirs.data_ptr(), theirs.tolist()) == (tensor.address, [1, 2])
    del theirs
    assert released(tensor)


def test_what_torchs_table_refuses_is_freed():
    import torch

    memory = Memory(64)
    tensor = Tensor(memory.address, (8,), None, by_name("float6_e2m3fn").dtype, CPU, memory)

    with pytest.raises((BufferError, RuntimeError)):
        to_dlpack(tensor, torch.Tensor)
    assert released(tensor)


def test_a_conjugation_still_to_be_done_is_not_lost():
    """The table of torch hands out the memory as if it had been done."""
    import torch

    lazy = torch.tensor([1 + 2j]).conj()

    with pytest.raises(BufferError, match="conjugate"):
        from_dlpack(lazy)
    assert memoryview(from_dlpack(lazy.resolve_conj())).nbytes == 8


def test_a_negation_still_to_be_done_is_not_lost():
    """Both the table of torch and its `__dlpack__` hand out the memory as if it had been done."""
    import torch

    lazy = torch.tensor([1 + 2j, 3 - 4j]).conj().imag

    with pytest.raises(BufferError, match="resolve_neg"):
        from_dlpack(lazy)
    with pytest.raises(BufferError, match="resolve_neg"):
        from_dlpack(lazy, device="cpu")
    for resolved in (from_dlpack(lazy.resolve_neg()), from_dlpack(lazy, copy=True)):
        assert memoryview(resolved).tolist() == [-2, 4]


def test_torch_survives_negative_strides():
    """It ends the process over them, so it must not get them."""
    import torch

    tensor = from_dlpack(np.arange(4.0)[::-1])
    for taken in (torch.from_dlpack(tensor), to_dlpack(tensor, torch.Tensor)):
        assert taken.tolist() == [3, 2, 1, 0]


def test_tvm_ffi_uses_our_table_both_ways():
    import tvm_ffi

    class Silent(Tensor):
        def __dlpack__(self, **_):
            raise AssertionError("the table was not used")

    tensor = tensor_of([1, 2], cls=Silent)
    taken = tvm_ffi.from_dlpack(tensor)
    back = tvm_ffi.get_global_func("testing.echo")(tensor)

    assert taken.data_ptr() == tensor.address
    assert (type(back), back.address) == (Tensor, tensor.address)
    del taken, back
    assert released(tensor)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_values_of_ml_dtypes_travel(name):
    import torch

    element = by_name(name)
    array = np.array([0.5, 1, -2], dtype=element.to_numpy())
    tensor = Tensor(array.ctypes.data, (3,), None, element.dtype, CPU, array)

    assert torch.from_dlpack(tensor).to(torch.float32).tolist() == [0.5, 1, -2]


def test_tensors_that_record_gradients_are_refused():
    """The table of torch hands them out, and writes to them would go unrecorded."""
    import torch

    with pytest.raises(BufferError, match="gradient"):
        from_dlpack(torch.ones(2, requires_grad=True))


AT_EXIT = """
    import gc, os, sys
    import jax, numpy, torch, tvm_ffi
    from modular_tf.dlpack import from_dlpack, to_dlpack
    from tests.dlpack.memory import tensor_of

    def leave_everything_behind(round_):
        tensor = tensor_of([1, 2, 3])
        takers = [numpy.from_dlpack, torch.from_dlpack, tvm_ffi.from_dlpack]
        if round_ == 0:  # it takes a second to start
            takers.append(jax.numpy.from_dlpack)
        kept = [take(tensor) for take in takers]
        assert tensor._n_exports == len(takers)
        kept += [from_dlpack(taken) for taken in kept]
        kept += [tensor.__dlpack__(), to_dlpack(tensor, torch.Tensor), kept]
        sys.kept = sys.modules["kept"] = kept

    gc.freeze()  # else each child spends a second on what the libraries left, and not on tensors
    ended = []
    for round_ in range(10):
        child = os.fork()
        if child == 0:
            leave_everything_behind(round_)
            sys.exit(0)
        ended.append(os.waitpid(child, 0)[1])
    print(ended.count(0))
"""


def test_arrays_of_theirs_may_outlive_the_interpreter(run_python):
    assert run_python(AT_EXIT).stdout == "10\n"
