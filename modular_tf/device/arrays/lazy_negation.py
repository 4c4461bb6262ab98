"""Tensors whose elements have the other sign in memory, which DLPack has no word for."""

from __future__ import annotations

from typing import Any


def refuse_negated(producer: Any) -> None:
    """Refuse a producer that still has to negate its elements, as torch's `is_neg()` says.

    torch refuses a conjugation that is still to be done, but hands these out as they are.

    Raises:
        BufferError: It is one, such as `tensor.conj().imag`.
    """
    ask = getattr(producer, "is_neg", None)
    if callable(ask) and ask() is True:
        raise BufferError(
            "Can't export tensors with the negative bit set, whose memory has the other sign;"
            " use tensor.resolve_neg()"
        )
