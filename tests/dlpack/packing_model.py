"""How elements of less than 8 bits lie, packed and padded, by Python's integers."""

from __future__ import annotations

from random import Random

from modular_tf.abi.dlpack_elements import ELEMENT_TYPES

LANES = (1, 2, 3, 5)
ODD_WIDTHS = tuple((1, bits, 1) for bits in (1, 3, 5, 7, 9, 12, 20, 255))
DTYPES = (
    *dict.fromkeys(
        (int(element.code), element.bits, lanes) for element in ELEMENT_TYPES for lanes in LANES
    ),
    *ODD_WIDTHS,
)
"""Every element type that has a name, alone and in vectors, and widths that have none."""


def lane_values(dtype: tuple[int, int, int], count: int, seed: int = 0) -> list[int]:
    """Return the bits of all lanes of so many elements."""
    _, bits, lanes = dtype
    return [Random(seed + i).getrandbits(bits) for i in range(count * lanes)]


def packed(dtype: tuple[int, int, int], values: list[int]) -> bytes:
    """Return lanes without gaps, the first in the lowest bits."""
    bits = dtype[1]
    whole = sum(value << (i * bits) for i, value in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


def padded(dtype: tuple[int, int, int], values: list[int]) -> bytes:
    """Return lanes in bytes of their own."""
    return b"".join(value.to_bytes((dtype[1] + 7) // 8, "little") for value in values)
