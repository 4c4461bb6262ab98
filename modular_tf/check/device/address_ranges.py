"""Whether pieces of memory lie apart."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from modular_tf.check.expectation import expect

if TYPE_CHECKING:
    from collections.abc import Sequence


def expect_apart(ranges: Sequence[tuple[int, int]], what: str) -> None:
    """Demand that no two ranges share a byte.

    Args:
        ranges: Address and size of each, in bytes.
        what: They are, such as `device memories`.

    Raises:
        Deviation: Two do.
    """
    ordered = sorted(ranges)
    for (start, size), (after, _) in pairwise(ordered):
        expect(
            start + size <= after,
            f"two {what} overlap that exist at the same time",
            expected=f"none begins before {start + size:#x}",
            found=f"{size} bytes at {start:#x}, and others at {after:#x}",
        )
