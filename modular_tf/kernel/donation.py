"""Inputs that a caller gives away with a call, whose memory an output may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.device.arrays.array import DeviceArray
from modular_tf.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.kernel.inputs import Given

__all__ = ["NOTHING_DONATED", "donated_inputs"]

NOTHING_DONATED: Sequence[DeviceArray] = ()


def donated_inputs(op: str, flat: Sequence[Given], donate: Sequence[DeviceArray]) -> frozenset[int]:
    """Return the indices of donated inputs, but of those that others view: they stay as they are.

    Raises InvalidArgumentError if `donate` is no list, or one of it is no input, or two of them.
    """
    if not isinstance(donate, (list, tuple)):
        found = "one array" if isinstance(donate, DeviceArray) else repr(type(donate).__name__)
        text = f"{op}: donate takes a list of arrays; found {found}: give donate=[array]"
        raise InvalidArgumentError(text, operation=op)
    indices = []
    for array in donate:
        at = [index for index, each in enumerate(flat) if each.source is array]
        if len(at) != 1:
            raise _undonatable(op, array, len(at))
        if not array._n_exports:  # else others see the memory, and must see it unchanged  # noqa: SLF001
            indices += at
    return frozenset(indices)


def _undonatable(op: str, array: Any, times: int) -> InvalidArgumentError:
    shown = repr(array) if isinstance(array, DeviceArray) else f"{type(array).__name__!r} object"
    found = f"{shown} is {f'{times} inputs' if times else 'no input'} of this call"
    hint = "" if isinstance(array, DeviceArray) else "; an array is put there by device.put(array)"
    text = f"{op}: a donated array must be one input, an array of the device; {found}{hint}"
    return InvalidArgumentError(text, operation=op)
