"""Elements of less than 8 bits: from several in a byte, as DLPack packs them, to one in each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modular_tf.abi.dlpack_elements import ElementType


def unpack(data: Any, element: ElementType, count: int) -> Any:
    """Return a numpy array of bytes, one for each element, whose upper bits are 0.

    So ml_dtypes stores them, negative numbers too.

    Args:
        data: The packed bytes; the first element is in the lowest bits of the first byte.
        element: Of one lane and less than 8 bits.
        count: Of elements.
    """
    numpy = import_module("numpy")
    packed = numpy.frombuffer(data, numpy.uint8)
    bits = numpy.unpackbits(packed, count=count * element.bits, bitorder="little")
    return numpy.packbits(bits.reshape(count, element.bits), axis=1, bitorder="little").reshape(-1)
