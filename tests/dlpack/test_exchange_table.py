"""`__dlpack_c_exchange_api__`: ours as a C consumer sees it, and foreign ones."""

from __future__ import annotations

import ctypes

import pytest

from modular_tf.dlpack import from_dlpack, to_dlpack
from modular_tf.native.tensor import Tensor, export_by_table, import_by_table
from tests.dlpack import foreign
from tests.dlpack.exchange import NAME, OURS, delete, describe, managed_from
from tests.dlpack.memory import CPU, FLOAT32, tensor_of


def allocate(**fields):
    """Call the allocator as consumers do, without the GIL; return its result and what it said."""
    said = []
    sizes = fields.pop("shape", (3, 5))
    shape = sizes and (ctypes.c_int64 * 2)(*sizes)
    prototype = foreign.Tensor(device_type=1, ndim=2, code=2, bits=32, lanes=1, shape=shape)
    for name, value in fields.items():
        setattr(prototype, name, value)
    out = ctypes.c_void_p()
    set_error = foreign.SET_ERROR(lambda _, kind, message: said.append((kind, message)))
    status = OURS.allocate(ctypes.byref(prototype), ctypes.byref(out), None, set_error)
    return status, said, out.value


def test_the_table_is_complete_and_of_our_version():
    assert foreign.name_of(Tensor.__dlpack_c_exchange_api__) == NAME.decode()
    assert (OURS.major, OURS.minor, OURS.prev_api) == (1, 3, None)
    slots = ("allocate", "from_object", "to_object", "describe", "stream")
    assert [slot for slot in slots if not getattr(OURS, slot)] == []


def test_subclasses_have_it_too():
    class Array(Tensor):
        pass

    assert Array.__dlpack_c_exchange_api__ is Tensor.__dlpack_c_exchange_api__
    managed = managed_from(tensor_of([1], cls=Array))
    assert managed.dl_tensor.ndim == 1
    delete(managed)


def returned(managed):
    """Return the object that the table makes of a managed tensor."""
    out = ctypes.c_void_p()
    assert OURS.to_object(ctypes.addressof(managed), ctypes.byref(out)) == 0
    back = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(back))
    return back


def test_there_and_back():
    tensor = tensor_of([1, 2], read_only=True)
    managed = managed_from(tensor)

    assert (managed.major, managed.minor, managed.flags) == (1, 3, 1)
    back = returned(managed)

    assert (type(back), back.address, back.read_only) == (Tensor, tensor.address, True)
    assert tensor._n_exports == 1
    del back
    assert tensor._n_exports == 0


def test_a_borrowed_description():
    """What it points at stays as long as the tensor, though its memory was ended."""
    tensor = tensor_of([1, 2, 3, 4], (2, 2))
    described = describe(tensor)

    assert (described.data, described.shape[:2]) == (tensor.address, [2, 2])
    assert described.strides[:2] == [2, 1]
    assert tensor._n_exports == 0
    memory = tensor.owner.watch()
    tensor._end_memory()
    assert (ctypes.c_float * 4).from_address(described.data)[:] == [1, 2, 3, 4]
    assert memory() is not None
    del tensor
    assert memory() is None


@pytest.mark.parametrize("slot", ["from_object", "describe"])
def test_other_objects_are_refused(slot):
    out = foreign.Tensor() if slot == "describe" else ctypes.c_void_p()

    with pytest.raises(TypeError, match="modular_tf tensor"):
        getattr(OURS, slot)(3, ctypes.byref(out))


def test_a_refused_tensor_stays_the_callers_of_our_table_and_is_freed_where_a_table_gave_it():
    table = Table()
    table.producer.managed.major = 2

    with pytest.raises(BufferError, match="found 2"):
        OURS.to_object(ctypes.addressof(table.producer.managed), ctypes.byref(ctypes.c_void_p()))
    assert table.producer.deleted == 0
    with pytest.raises(BufferError, match="found 2"):
        import_by_table(type_with(table.capsule)())
    assert table.producer.deleted == 1


@pytest.mark.parametrize("device_type", [1, 3, 11, 2, 12])
def test_memory_of_the_host_and_devices_of_others_have_no_stream_here(device_type):
    stream = ctypes.c_void_p(1)

    assert OURS.stream(device_type, 77, ctypes.byref(stream)) == 0
    assert stream.value is None


class Pending(Tensor):
    """Keeps what its hook was asked to wait for."""

    waited_for = ()

    def _before_export(self, stream):
        self.waited_for += (stream,)


def pending(device_type):
    tensor = tensor_of([1], cls=Pending, dlpack_device=(device_type, 0))
    tensor._needs_sync = True
    return tensor


@pytest.mark.parametrize(
    ("device_types", "waited_for"), [((2, 12, 13), (-1, -1)), ((1, 3, 11), (None, None))]
)
def test_the_table_waits_for_work_of_the_host_and_for_no_work_of_a_device(device_types, waited_for):
    """The hook is called, since the tensor may refuse; -1 tells it not to wait.

    Memory of the host has no stream on which a consumer could come later.
    """
    for device_type in device_types:
        tensor = pending(device_type)
        delete(managed_from(tensor))
        describe(tensor)
        assert tensor.waited_for == waited_for


def test_what_left_without_a_wait_is_waited_for_when_it_leaves_again():
    tensor = pending(12)
    back = returned(managed_from(tensor))
    assert tensor.waited_for == (-1,)

    back.__dlpack__()
    assert tensor.waited_for == (-1, None)


def wrong_tensors():
    """Yield what subclasses bring for memory elsewhere that is no tensor, or not there."""
    memory = tensor_of([1, 2, 3]).owner
    arguments = memory.address + 8, (3,), (-1,), FLOAT32, CPU, memory
    for made in (5, Tensor.__new__(Tensor)):
        wrong = type("Wrong", (Tensor,), {"_export_elsewhere": lambda *_, made=made: made})
        yield wrong(*arguments), "Wrong.*expected a tensor that has memory"
    itself = type("Wrong", (Tensor,), {"_export_elsewhere": lambda self, *_: self})
    yield itself(*arguments), "Wrong.*negative"


def test_what_a_subclass_brings_for_memory_elsewhere_has_to_be_a_tensor():
    exports = managed_from, import_by_table, from_dlpack, Tensor.__dlpack__
    for backwards, said in wrong_tensors():
        for export in exports:
            with pytest.raises(BufferError, match=said):
                export(backwards)
        assert backwards._n_exports == 0


def test_negative_strides_are_copied_or_refused():
    memory = tensor_of([1, 2, 3]).owner
    tensor = Tensor(memory.address + 8, (3,), (-1,), FLOAT32, CPU, memory)
    managed = managed_from(tensor)

    assert managed.flags == 2
    assert (ctypes.c_float * 3).from_address(managed.dl_tensor.data)[:] == [3, 2, 1]
    delete(managed)
    with pytest.raises(BufferError, match="negative"):
        describe(tensor)


WILD = ctypes.cast(ctypes.c_void_p(1), ctypes.POINTER(ctypes.c_int64))


@pytest.mark.parametrize(
    "fields",
    [{}, {"data": 1, "strides": WILD, "byte_offset": 7}, {"device_id": 3}],
    ids=["plain", "what it need not read", "a number of the host"],
)
def test_the_allocator_makes_compact_aligned_memory(fields):
    status, said, address = allocate(**fields)
    managed = foreign.Versioned.from_address(address)
    dl = managed.dl_tensor

    assert (status, said) == (0, [])
    assert (managed.major, managed.minor, managed.flags) == (1, 3, 0)
    assert dl.data % 256 == dl.byte_offset == 0
    assert (dl.device_type, dl.device_id) == CPU
    assert (dl.shape[:2], dl.strides[:2]) == ([3, 5], [5, 1])
    ctypes.memset(dl.data, 1, 60)
    delete(managed)
    empty = foreign.Versioned.from_address(allocate(shape=(0, 5))[2])
    assert empty.dl_tensor.data is None
    delete(empty)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"device_type": 2}, b"BufferError"),
        ({"ndim": 65}, b"ValueError"),
        ({"shape": None}, b"ValueError"),
        ({"bits": 0}, b"ValueError"),
        ({"code": 18}, b"ValueError"),
        ({"shape": (-1, 1)}, b"ValueError"),
        ({"shape": (2**40, 2**40)}, b"ValueError"),
        ({"shape": (2**50, 4)}, b"MemoryError"),
    ],
)
def test_the_allocator_says_why_it_cannot(fields, kind):
    status, said, address = allocate(**fields)

    assert (status, address) == (-1, None)
    assert [said_kind for said_kind, _ in said] == [kind]


class Table:
    """A foreign table that hands out, and takes, a `foreign.Producer`."""

    def __init__(self, major=1, previous=None):
        self.producer = foreign.Producer()
        self.taken = []
        self.fails = False
        fields = dict(foreign.ExchangeTable._fields_)
        self.struct = foreign.ExchangeTable(major, 0, previous and ctypes.addressof(previous))
        self.struct.from_object = fields["from_object"](self._from_object)
        self.struct.to_object = fields["to_object"](self._to_object)
        self.capsule = foreign.new_capsule(self.struct, NAME)

    def _from_object(self, _, out):
        if self.fails:
            return -1
        out[0] = ctypes.addressof(self.producer.managed)
        return 0

    def _to_object(self, pointer, out):
        if self.fails:
            return -1
        self.taken.append(pointer)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        out[0] = id(self)
        return 0


def type_with(table) -> type:
    return type("Foreign", (), {"__dlpack_c_exchange_api__": table, "__dlpack__": None})


class Complete:
    """A producer of a table and of a `__dlpack__`, for device memory or host memory."""

    def __init__(self, table, **attributes):
        self.table = table
        self.calls = []
        self.__dict__.update(attributes)

    def __dlpack_device__(self):
        return self.table.producer.dl.device_type, 0

    def __dlpack__(self, **asked):
        self.calls.append(asked)
        return self.table.producer.capsule


@pytest.mark.parametrize(
    ("fields", "attributes", "asked"),
    [
        ({}, {}, []),
        ({}, {"requires_grad": False}, []),
        ({}, {"requires_grad": True}, [{"max_version": (1, 3)}]),
        ({}, {"is_neg": lambda: False}, []),
        ({"code": 5}, {}, [{"max_version": (1, 3)}]),
        ({"device_type": 2}, {}, [{"max_version": (1, 3), "stream": None}]),
    ],
    ids=["plain", "without gradients", "gradients", "no negation", "complex", "a device's"],
)
def test_the_table_is_used_only_where_it_says_enough(fields, attributes, asked):
    table = Table()
    for name, value in fields.items():
        setattr(table.producer.dl, name, value)
    theirs = type("Theirs", (Complete,), {"__dlpack_c_exchange_api__": table.capsule})
    producer = theirs(table, **attributes)

    tensor = from_dlpack(producer)
    assert tensor.address == table.producer.address
    assert producer.calls == asked
    del tensor
    assert asked or table.producer.deleted == 1


def test_an_older_table_is_found_behind_a_newer_one():
    old = Table()
    new = Table(major=2, previous=old.struct)

    assert import_by_table(type_with(new.capsule)()).address == old.producer.address


def without_functions():
    table = Table()
    fields = dict(foreign.ExchangeTable._fields_)
    table.struct.from_object = fields["from_object"]()
    table.struct.to_object = fields["to_object"]()
    return table


def circle():
    table = Table(major=2)
    table.struct.prev_api = ctypes.addressof(table.struct)
    return table


GOOD = Table()
PASSED_BY = {
    "None": None,
    "text": "capsule",
    "only newer": Table(major=2),
    "only older": Table(major=0),
    "a chain that goes round": circle(),
    "without functions": without_functions(),
    "another name": foreign.new_capsule(GOOD.struct, b"something_else"),
}


@pytest.mark.parametrize("table", PASSED_BY.values(), ids=PASSED_BY)
def test_other_tables_are_passed_by(table):
    foreign_type = type_with(getattr(table, "capsule", table))

    assert import_by_table(foreign_type()) is None
    assert export_by_table(tensor_of([1]), foreign_type) is None


def test_a_failure_without_a_reason_is_an_error_and_leaves_nothing():
    table, tensor = Table(), tensor_of([1, 2])
    table.fails = True

    with pytest.raises(BufferError, match="said nothing"):
        import_by_table(type_with(table.capsule)())
    with pytest.raises(BufferError, match="said nothing"):
        to_dlpack(tensor, type_with(table.capsule))
    assert tensor._n_exports == 0
    with pytest.raises(BufferError, match="'dict' has no C exchange table"):
        to_dlpack(tensor, dict)


def test_we_hand_over_by_a_foreign_table():
    """It waits before: nobody asks for a stream on that way."""
    table = Table()
    tensor = pending(12)

    assert to_dlpack(tensor, type_with(table.capsule)) is table
    assert tensor.waited_for == (None,)
    managed = foreign.Versioned.from_address(table.taken[0])
    assert managed.dl_tensor.data == tensor.address
    assert tensor._n_exports == 1
    delete(managed)
    assert tensor._n_exports == 0
