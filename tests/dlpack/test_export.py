"""`__dlpack__`: which struct, which memory, and what is refused."""

from __future__ import annotations

import ctypes

import pytest

from modular_tf.native.tensor import Tensor
from tests.dlpack.foreign import Legacy, Versioned, content_of, name_of
from tests.dlpack.memory import CPU, FLOAT32, Memory, tensor_of

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4


def exported(tensor, **request):
    return content_of(tensor.__dlpack__(max_version=(1, 0), **request), Versioned)


@pytest.mark.parametrize("request_", [{}, {"max_version": None}, {"max_version": (0, 8)}])
def test_consumers_before_1_0_get_the_legacy_struct(request_):
    tensor = tensor_of([1, 2, 3], (3, 1))
    capsule = tensor.__dlpack__(**request_)
    dl = content_of(capsule, Legacy).dl_tensor

    assert name_of(capsule) == "dltensor"
    assert (dl.data, dl.ndim, dl.byte_offset) == (tensor.address, 2, 0)
    assert (dl.shape[:2], dl.strides[:2]) == ([3, 1], [1, 1])


@pytest.mark.parametrize("version", [(1, 0), (1, 3), (1, 99), (2, 0)])
def test_others_get_our_own_version(version):
    tensor = tensor_of([1, 2])
    capsule = tensor.__dlpack__(max_version=version, dl_device=None, copy=None, stream=None)
    managed = content_of(capsule, Versioned)

    assert name_of(capsule) == "dltensor_versioned"
    assert (managed.major, managed.minor, managed.flags) == (1, 3, 0)
    assert (managed.dl_tensor.code, managed.dl_tensor.bits, managed.dl_tensor.lanes) == FLOAT32
    assert (managed.dl_tensor.device_type, managed.dl_tensor.device_id) == CPU


@pytest.mark.parametrize(("what", "flag"), [("read_only", READ_ONLY), ("is_padded", PADDED)])
def test_flags_travel_where_the_struct_can_say_them(what, flag):
    tensor = tensor_of([1], **{what: True})

    assert exported(tensor).flags == flag
    with pytest.raises(BufferError, match="max_version"):
        tensor.__dlpack__()


def test_scalars_and_empty_tensors_point_nowhere():
    scalar = exported(tensor_of([1], ()))
    assert not scalar.dl_tensor.shape
    assert not scalar.dl_tensor.strides

    empty = exported(Tensor(64, (2, 0), None, FLOAT32, CPU, None))
    assert empty.dl_tensor.data is None
    assert empty.dl_tensor.strides[:2] == [1, 1] or empty.dl_tensor.strides[0] >= 0


@pytest.mark.parametrize(
    "request_",
    [
        {"max_version": 1},
        {"max_version": (1,)},
        {"dl_device": 1},
        {"dl_device": (1, 2**40)},
    ],
)
def test_malformed_requests_are_not_type_errors(request_):
    """Consumers take a TypeError for an old producer, and ask again for less."""
    with pytest.raises(ValueError, match=next(iter(request_))):
        tensor_of([1]).__dlpack__(**request_)
    with pytest.raises(TypeError, match="nonsense"):
        tensor_of([1]).__dlpack__(nonsense=1, **request_)


@pytest.mark.parametrize(
    ("device_type", "good", "bad"),
    [
        (1, [None], [-1, 0, 1, 2, object()]),
        (3, [None], [1]),
        (2, [None, -1, 1, 2, 1 << 40], [0, -2]),
        (10, [None, -1, 0, 3, 1 << 40], [1, 2, -2]),
        (12, [None], [-1, 0, 1, 1 << 40]),
    ],
)
def test_streams_are_judged_by_the_device(device_type, good, bad):
    tensor = tensor_of([1], dlpack_device=(device_type, 0))

    for stream in good:
        assert exported(tensor, stream=stream).dl_tensor.data == tensor.address
    for stream in bad:
        with pytest.raises(ValueError, match="stream"):
            exported(tensor, stream=stream)
    assert tensor._n_exports == 0


def test_a_subclass_that_brings_memory_elsewhere_gets_the_request_and_has_to_fulfil_it():
    asked = []

    class Elsewhere(Tensor):
        def _export_elsewhere(self, *request):
            asked.append(request)
            return tensor_of([9], is_copied=True)

    tensor = tensor_of([1], cls=Elsewhere)

    assert exported(tensor, copy=True).flags == IS_COPIED
    with pytest.raises(BufferError, match=r"\(1, 0\) instead of \(2, 1\)"):
        exported(tensor, dl_device=(2, 1))
    assert asked == [(None, None, True), (None, (2, 1), None)]


def test_a_copy_of_host_memory_is_compact_and_aligned():
    memory = tensor_of([0, 1, 2, 3, 4, 5]).owner
    turned = Tensor(memory.address, (3, 2), (1, 3), FLOAT32, CPU, memory, read_only=True)

    managed = exported(turned, copy=True)
    values = (ctypes.c_float * 6).from_address(managed.dl_tensor.data)

    assert managed.flags == IS_COPIED
    assert managed.dl_tensor.data % 256 == 0
    assert managed.dl_tensor.strides[:2] == [2, 1]
    assert list(values) == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("device", [(3, 0), (11, 1)])
def test_pinned_memory_is_host_memory_without_a_copy(device):
    tensor = tensor_of([1], dlpack_device=device)

    for copy in (None, False):
        managed = exported(tensor, dl_device=CPU, copy=copy)
        assert (managed.dl_tensor.data, managed.flags) == (tensor.address, 0)
        assert managed.dl_tensor.device_type == 1


@pytest.mark.parametrize(("device", "wanted"), [((1, 0), (2, 0)), ((12, 0), CPU), (CPU, (1, 1))])
def test_where_the_base_class_cannot_bring_it(device, wanted):
    with pytest.raises(BufferError, match="cannot go"):
        exported(tensor_of([1], dlpack_device=device), dl_device=wanted)


def test_negative_strides_never_leave():
    """There is a consumer that ends the process over them."""
    memory = tensor_of([1, 2, 3]).owner
    tensor = Tensor(memory.address + 8, (3,), (-1,), FLOAT32, CPU, memory)

    managed = exported(tensor)
    assert managed.flags == IS_COPIED
    assert (ctypes.c_float * 3).from_address(managed.dl_tensor.data)[:] == [3, 2, 1]
    with pytest.raises(BufferError, match="negative"):
        exported(tensor, copy=False)


def test_packed_elements_are_copied_as_they_lie():
    memory = Memory(4)
    memory.bytes[:] = b"\x21\x43\x65\x07"
    compact = Tensor(memory.address, (7,), None, (0, 4, 1), CPU, memory)
    gaps = Tensor(memory.address, (3,), (2,), (0, 4, 1), CPU, memory)

    managed = exported(compact, copy=True)
    assert (ctypes.c_char * 4).from_address(managed.dl_tensor.data)[:] == memory.bytes[:]
    with pytest.raises(BufferError, match="compact"):
        exported(gaps, copy=True)
