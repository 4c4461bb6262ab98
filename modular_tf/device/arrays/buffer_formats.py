"""From the formats of Python's buffers to element types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.dlpack_elements import by_name
from modular_tf.errors import InvalidArgumentError

if TYPE_CHECKING:
    from modular_tf.abi.dlpack_elements import ElementType

# Several letters have one size on the machines of this package; which is the buffer's to say.
_KINDS = {
    "?": "bool",
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("cBHILQN", "uint"),
    **dict.fromkeys("efd", "float"),
    **dict.fromkeys(("Zf", "Zd"), "complex"),
}
_NATIVE = "@=<|"  # little-endian, as every machine that plugins run on


def element_of_format(view: memoryview) -> ElementType:
    """Return what a buffer's elements are.

    Raises:
        InvalidArgumentError: They have no name in DLPack: structures, pointers, the other byte
            order.
    """
    kind = _KINDS.get(view.format.lstrip(_NATIVE))
    if kind is None:
        raise InvalidArgumentError(
            f"a device array cannot hold elements of buffer format {view.format!r}; "
            "for plain bytes, give memoryview(...).cast('B')"
        )
    return by_name(kind if kind == "bool" else f"{kind}{view.itemsize * 8}")
