"""Tensors from other libraries and for them, without a copy.

```python
from modular_tf import dlpack

tensor = dlpack.from_dlpack(numpy_array)  # a view that keeps the array
torch.from_dlpack(tensor)                 # and on
```

Anything with `__dlpack__` goes, in versions 1.x and before 1.0. Where the other type has a C
exchange table, it is used: no capsule is made then.
"""

from __future__ import annotations

from typing import Any, TypeVar

from modular_tf.abi.dlpack_devices import DLPACK_VERSION, HOST, DeviceType
from modular_tf.abi.dlpack_elements import ElementType, TypeCode, by_dtype
from modular_tf.device.arrays.array_content import refuse_negated
from modular_tf.native.tensor import Tensor, consume, export_by_table, import_by_table

__all__ = [
    "HOST",
    "DeviceType",
    "ElementType",
    "Tensor",
    "TypeCode",
    "consume",
    "element_type",
    "from_dlpack",
    "to_dlpack",
]

_Object = TypeVar("_Object")
_CPU = int(DeviceType.CPU)


def from_dlpack(
    producer: Any, /, *, device: tuple[int, int] | str | None = None, copy: bool | None = None
) -> Tensor:
    """Return a tensor over a producer's memory, which it keeps. [any thread].

    Memory of a device is synchronised with its default stream by the producer.

    Args:
        producer: An object with `__dlpack__`.
        device: Where the memory shall be: "cpu", or type and number; None for where it is.
        copy: True for memory of one's own, False for never a copy, None for only if needed.

    Raises:
        BufferError: The memory cannot be described or moved as asked.
        ValueError: `device` makes no sense.
        TypeError: The object has no `__dlpack__`.
        Exception: Whatever else the producer raises.
    """
    if device is None and copy is None:
        tensor = _by_table(producer)
        if tensor is not None:
            return tensor
    return consume(_ask(producer, _device(device), copy=copy))


def to_dlpack(tensor: Tensor, consumer: type[_Object], /) -> _Object:
    """Return an object of a type that has a C exchange table, over a tensor's memory. [any thread].

    It takes half the time of the type's own `from_dlpack`.

    Raises:
        BufferError: The type has no table, or refused the tensor.
    """
    made = export_by_table(tensor, consumer)
    if made is None:
        raise BufferError(
            f"{consumer.__name__!r} has no C exchange table of DLPack {DLPACK_VERSION[0]}; "
            "use its own from_dlpack"
        )
    return made


def element_type(tensor: Tensor, /) -> ElementType:
    """Return what a tensor's elements are, by name."""
    return by_dtype(tensor.dlpack_dtype)


def _by_table(producer: Any) -> Tensor | None:
    """Use the type's C exchange table; None where it has none, or where that may not say enough.

    A table hands out what is refused otherwise: tensors that record gradients, and numbers whose
    negation is still to be done.
    """
    if getattr(type(producer), "__dlpack_c_exchange_api__", None) is None:
        return None
    if getattr(producer, "requires_grad", False):
        return None
    if hasattr(producer, "is_neg") and producer.is_neg() is True:
        return None
    return import_by_table(producer)


def _device(device: tuple[int, int] | str | None) -> tuple[int, int] | None:
    if device is None or isinstance(device, tuple):
        return device
    if device == "cpu":
        return HOST
    raise ValueError(f"no DLPack device is called {device!r}; use 'cpu', or type and number")


def _ask(producer: Any, device: tuple[int, int] | None, *, copy: bool | None) -> object:
    """Call `__dlpack__` with what is asked for, and again as producers before 1.0 know it."""
    wishes: dict[str, Any] = {}
    if device is not None:
        wishes["dl_device"] = device
    if copy is not None:
        wishes["copy"] = copy
    if not copy and hasattr(producer, "is_neg"):  # torch gives copies the right sign
        refuse_negated(producer)
    if not _is_on_host(producer):
        wishes["stream"] = None  # the default stream; left out, it means no order at all to some
    try:
        return producer.__dlpack__(max_version=DLPACK_VERSION, **wishes)
    except TypeError as error:
        if device is not None or copy is not None:
            raise BufferError(
                f"{type(producer).__name__!r} objects speak a DLPack before 1.0, which has no word "
                "for a device or a copy"
            ) from error
        return producer.__dlpack__(**wishes)


def _is_on_host(producer: Any) -> bool:
    try:
        return bool(producer.__dlpack_device__()[0] == _CPU)
    except AttributeError:
        if hasattr(type(producer), "__dlpack__"):
            raise
        raise TypeError(f"{type(producer).__name__!r} objects have no __dlpack__") from None
