"""Our own exchange table, as C consumers use it."""

from __future__ import annotations

import ctypes

from modular_tf.dlpack import from_dlpack
from modular_tf.native.tensor import Tensor, consume
from tests.dlpack import foreign

NAME = b"dlpack_exchange_api"
OURS = foreign.ExchangeTable.from_address(
    ctypes.pythonapi.PyCapsule_GetPointer(Tensor.__dlpack_c_exchange_api__, NAME)
)

IMPORTS = {
    "table": from_dlpack,
    "versioned": lambda tensor: consume(tensor.__dlpack__(max_version=(1, 0))),
    "legacy": lambda tensor: consume(tensor.__dlpack__()),
}
"""The ways on which a tensor of ours comes back."""


def managed_from(thing: object) -> foreign.Versioned:
    """Return the managed tensor of an object; who calls it deletes that."""
    out = ctypes.c_void_p()
    assert OURS.from_object(thing, ctypes.byref(out)) == 0
    return foreign.Versioned.from_address(out.value)


def delete(managed: foreign.Versioned) -> None:
    """Call the deleter."""
    managed.deleter(ctypes.addressof(managed))


def describe(thing: object) -> foreign.Tensor:
    """Return the description of an object, which is borrowed from it."""
    described = foreign.Tensor()
    assert OURS.describe(thing, ctypes.byref(described)) == 0
    return described
