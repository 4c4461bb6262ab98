"""numpy, torch, jax and tvm-ffi take our tensors where they lie, and we take theirs."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from modular_tf.abi.dlpack_elements import ELEMENT_TYPES, by_name
from modular_tf.dlpack import DeviceType, element_type, from_dlpack, to_dlpack
from modular_tf.native.tensor import Tensor, import_by_table
from tests.dlpack.exchange import OURS
from tests.dlpack.memory import CPU, Memory, tensor_of

pytestmark = pytest.mark.xdist_group("array libraries")  # each takes a second to import


def released(tensor) -> bool:
    if tensor._n_exports:
        gc.collect()
    return tensor._n_exports == 0


def test_they_take_ours_where_it_lies(consumer):
    tensor = tensor_of([1, 2, 3, 4, 5, 6], (2, 3))
    watched, address = tensor.owner.watch(), tensor.address
    taken = consumer.take(tensor)
    assert tensor._n_exports == 1
    del tensor
    gc.collect()

    assert (consumer.address(taken), tuple(taken.shape)) == (address, (2, 3))
    assert memoryview(from_dlpack(taken)).tolist() == [[1, 2, 3], [4, 5, 6]]
    del taken
    gc.collect()
    assert watched() is None
    for shape, values in (((), [3]), ((2, 0), [])):
        assert tuple(consumer.take(tensor_of(values, shape)).shape) == shape


def test_we_take_theirs_where_it_lies(consumer):
    array = consumer.take(np.arange(64, dtype=np.float32))
    tensor = from_dlpack(array)

    assert tensor.address == consumer.address(array)
    assert element_type(tensor).name == "float32"
    del array
    gc.collect()
    assert memoryview(tensor).tolist() == list(range(64))


def test_every_element_type_is_taken_or_refused_without_a_leak(consumer):
    for element in ELEMENT_TYPES:
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


def test_device_memory_is_refused_or_a_handle(consumer, elsewhere):
    array = elsewhere.put(np.ones(2))
    kind, number = array.__dlpack_device__()

    assert kind == DeviceType.EXT_DEV
    if consumer.name == "tvm_ffi":
        taken = consumer.take(array)
        assert (str(taken.device), taken.data_ptr()) == (f"ext_dev:{number}", array.address)
        del taken
    else:
        with pytest.raises(Exception, match=r"(?i)device|dlpack|privateuse"):
            consumer.take(array)
    assert released(array)


@pytest.mark.parametrize("shift", [0, 1], ids=["all", "without the last"])
def test_numpy_sees_every_stride(shift):
    memory = tensor_of(range(24)).owner
    array = np.ctypeslib.as_array((ctypes.c_float * 24).from_address(memory.address))
    shaped = array.reshape(2, 3, 4)
    for view in (shaped.T, shaped[:, ::2], shaped[..., 1], np.broadcast_to(array[:4], (3, 4))):
        wanted = view[: view.shape[0] - shift]
        back = np.from_dlpack(from_dlpack(wanted))
        np.testing.assert_array_equal(back, wanted)
        assert back.size == 0 or back.strides == wanted.strides


def test_torch_takes_and_gives_by_its_table():
    import torch

    tensor = tensor_of([1, 2, 3, 4], (2, 2))
    theirs = to_dlpack(tensor, torch.Tensor)
    back = import_by_table(theirs.t())

    assert type(theirs) is torch.Tensor
    assert back.address == theirs.data_ptr() == tensor.address
    assert (theirs.tolist(), memoryview(back).tolist()) == ([[1, 2], [3, 4]], [[1, 3], [2, 4]])
    del theirs, back
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


def test_tvm_functions_get_the_work_stream(elsewhere):
    import tvm_ffi

    array = elsewhere.put(np.ones(2))
    place = array.__dlpack_device__()
    expected = ctypes.c_void_p()
    assert OURS.stream(*place, ctypes.byref(expected)) == 0
    seen = []

    def note(taken):
        seen.append(tvm_ffi.get_raw_stream(taken.device))

    tvm_ffi.convert_func(note)(array)
    assert (place[0], seen) == (DeviceType.EXT_DEV, [expected.value])
    assert seen[0] not in {None, 0}


@pytest.fixture
def run_with_libraries(fork_server, tmp_path):
    """Run code in a fork of an interpreter that has them all; return what it printed."""
    prelude = "import jax, numpy, torch, tvm_ffi, modular_tf.dlpack, modular_tf.service.default"

    def run(code):
        server = fork_server(prelude, {"TF_CPP_MIN_LOG_LEVEL": "1"})
        child = server.run(code, folder=tmp_path, environment={}, timeout=120)
        assert child.returncode == 0, child.stderr
        return child.stdout

    return run


@pytest.mark.parametrize("is_with_jax", [True, False])
def test_arrays_of_theirs_may_outlive_the_interpreter(is_with_jax, run_with_libraries):
    output = run_with_libraries(f"""
        import jax, numpy, sys, torch, tvm_ffi
        from modular_tf.dlpack import from_dlpack, to_dlpack
        from tests.dlpack.memory import tensor_of

        tensor = tensor_of([1, 2, 3])
        takers = [numpy.from_dlpack, torch.from_dlpack, tvm_ffi.from_dlpack]
        if {is_with_jax}:  # it has threads then
            takers.append(jax.numpy.from_dlpack)
        kept = [take(tensor) for take in takers]
        assert tensor._n_exports == len(takers)
        kept += [from_dlpack(taken) for taken in kept]
        kept += [tensor.__dlpack__(), to_dlpack(tensor, torch.Tensor), kept]
        sys.kept = sys.modules["kept"] = kept
        print("end")
    """)

    assert output == "end\n"
