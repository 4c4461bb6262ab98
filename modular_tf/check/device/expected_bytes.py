"""Comparing what a device holds with what it must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Deviation

if TYPE_CHECKING:
    from modular_tf.rules import Severity

_SHOWN_BYTES = 16
_PIECE_BYTES = 1 << 16
"""Compared at once: most of many MiB is mostly right."""


def expect_bytes(
    found: bytes, expected: bytes, what: str, *, severity: Severity | None = None
) -> None:
    """Demand that bytes are the expected ones.

    Args:
        found: The plugin's.
        expected: The rule's.
        what: What they are, such as `the target of memcpy_dtod`.
        severity: As in `Deviation`.

    Raises:
        Deviation: They differ; it says where first, and in how many bytes.
    """
    if found == expected:
        return
    if len(found) != len(expected):
        raise Deviation(
            f"{what} is not as long as it must be",
            expected=f"{len(expected)} bytes",
            found=f"{len(found)} bytes",
            severity=severity,
        )
    wrong = [
        at
        for start in range(0, len(expected), _PIECE_BYTES)
        for at in _differing(found, expected, start)
    ]
    at = wrong[0]
    raise Deviation(
        f"{what} differs in {len(wrong)} of {len(expected)} bytes, from byte {at} on",
        expected=_shown(expected, at),
        found=_shown(found, at),
        severity=severity,
    )


def _differing(found: bytes, expected: bytes, start: int) -> list[int]:
    """Return where one piece differs."""
    piece = slice(start, start + _PIECE_BYTES)
    if found[piece] == expected[piece]:
        return []
    end = min(start + _PIECE_BYTES, len(expected))
    return [at for at in range(start, end) if found[at] != expected[at]]


def _shown(data: bytes, at: int) -> str:
    return f"{data[at : at + _SHOWN_BYTES].hex(' ')} at byte {at}"
