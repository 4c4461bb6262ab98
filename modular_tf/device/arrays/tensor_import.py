"""Import of tensors of other libraries into host memory, by DLPack."""

from __future__ import annotations

from typing import Any

from modular_tf.abi.dlpack_devices import DLPACK_VERSION, HOST, DeviceType
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.tensor import Tensor, consume


def compact_host_tensor(producer: Any) -> Tensor:
    """Return a producer's tensor in host memory and C order, copied only if it must be.

    Raises InvalidArgumentError if it is not in host memory and its producer does not bring it
    there.
    """
    place = HOST
    try:
        place = producer.__dlpack_device__()
        tensor = _on_host(producer, place)
        if tensor.strides == _compact_strides(tensor.shape) or not tensor.size:
            return tensor
        return consume(tensor.__dlpack__(max_version=DLPACK_VERSION, copy=True))
    except BufferError as error:
        remedy = "" if place[0] == DeviceType.CPU else "; move it to host memory first"
        raise InvalidArgumentError(
            f"{type(producer).__name__!r} object for a device array: {error}{remedy}"
        ) from error


def _on_host(producer: Any, place: tuple[int, int]) -> Tensor:
    refuse_negated(producer)
    kind = _type_of(place)
    wishes: dict[str, Any] = {} if kind is DeviceType.CPU else {"dl_device": HOST}
    tensor = _consumed(_capsule(producer, wishes))
    if not DeviceType(tensor.dlpack_device[0]).is_host_readable:
        raise BufferError(f"its memory is on DLPack device {tensor.dlpack_device}")
    return tensor


def _type_of(device: tuple[int, int]) -> DeviceType:
    try:
        return DeviceType(int(device[0]))
    except ValueError:
        raise BufferError(f"its memory is on the unknown DLPack device {device}") from None


def _capsule(producer: Any, wishes: dict[str, Any]) -> object:
    """Return a versioned capsule, or an unversioned one if the producer knows no versions."""
    try:
        return producer.__dlpack__(max_version=DLPACK_VERSION, **wishes)
    except TypeError as error:
        if wishes:
            raise BufferError(f"it cannot be asked for host memory: {error}") from None
        return producer.__dlpack__()


def _consumed(capsule: object) -> Tensor:
    try:
        return consume(capsule)
    except ValueError as error:
        raise BufferError(f"its __dlpack__ gave nothing to take: {error}") from error


def _compact_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def refuse_negated(producer: Any) -> None:
    """Raise BufferError if a producer's elements are not negated yet, as torch's `is_neg()` says.

    Those of `tensor.conj().imag` are not. DLPack has no flag for that. torch itself refuses to
    export a lazy conjugation, but not these.
    """
    ask = getattr(producer, "is_neg", None)
    if callable(ask) and ask() is True:
        raise BufferError(
            "Can't export tensors with the negative bit set, whose memory has the other sign;"
            " use tensor.resolve_neg()"
        )
