"""A producer that is not ours, which can say anything: structs and capsules by ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

_pointer = ctypes.c_void_p


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", _pointer),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, _pointer)


class Legacy(ctypes.Structure):
    _fields_ = [("dl_tensor", Tensor), ("manager_ctx", _pointer), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", _pointer),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", Tensor),
    ]


SET_ERROR = ctypes.CFUNCTYPE(None, _pointer, ctypes.c_char_p, ctypes.c_char_p)
_out = ctypes.POINTER(_pointer)


class ExchangeTable(ctypes.Structure):
    """The functions keep the GIL, as those of the C interface want it."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", _pointer),
        ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _out, _pointer, SET_ERROR)),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _out)),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, _pointer, _out)),
        ("describe", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))),
        ("stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _out)),
    ]


_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [_pointer, ctypes.c_char_p, _pointer]
_python.PyCapsule_GetName.restype = ctypes.c_char_p
_python.PyCapsule_GetName.argtypes = [ctypes.py_object]
_python.PyCapsule_GetPointer.restype = _pointer
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


def name_of(capsule: object) -> str:
    """Return what a capsule is called now."""
    return _python.PyCapsule_GetName(capsule).decode()


def content_of(capsule: object, struct: type[Any]) -> Any:
    """Return a view of the struct that a capsule holds; the view keeps the capsule."""
    pointer = _python.PyCapsule_GetPointer(capsule, _python.PyCapsule_GetName(capsule))
    content = struct.from_address(pointer)
    content.capsule = capsule
    return content


def new_capsule(content: ctypes.Structure | None, name: bytes) -> Any:
    """Return a capsule without a destructor, over a struct that the caller keeps."""
    return _python.PyCapsule_New(ctypes.addressof(content), name, None)


class Producer:
    """A float32 tensor of four elements by default, each part of which a test may change.

    Attributes:
        managed: The struct.
        capsule: Around it, without a destructor.
        deleted: How often the deleter was called.
    """

    def __init__(self, *, versioned: bool = True, ndim: int = 1) -> None:
        self.values = (ctypes.c_float * 4)(1, 2, 3, 4)
        self.shape = (ctypes.c_int64 * max(ndim, 1))(*([4] + [1] * (ndim - 1))[: max(ndim, 1)])
        self.strides = (ctypes.c_int64 * max(ndim, 1))(*[1] * max(ndim, 1))
        self.managed: Any = Versioned(1, 3) if versioned else Legacy()
        self.deleted = 0
        self._deleter = DELETER(self._delete)
        self.managed.deleter = self._deleter
        self._describe(self.managed.dl_tensor, ndim)
        self._name = b"dltensor_versioned" if versioned else b"dltensor"
        self.capsule = new_capsule(self.managed, self._name)

    def _describe(self, dl: Tensor, ndim: int) -> None:
        dl.data = ctypes.addressof(self.values)
        dl.device_type, dl.device_id = 1, 0
        dl.code, dl.bits, dl.lanes = 2, 32, 1
        dl.ndim = ndim
        dl.shape, dl.strides = self.shape, self.strides

    def _delete(self, pointer: int) -> None:
        assert pointer == ctypes.addressof(self.managed)
        self.deleted += 1

    @property
    def dl(self) -> Tensor:
        """The description."""
        return self.managed.dl_tensor

    @property
    def address(self) -> int:
        """Of the first element."""
        return ctypes.addressof(self.values)
