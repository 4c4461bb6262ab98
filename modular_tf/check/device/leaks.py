"""Whether memory that is allocated and deallocated many times is returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Deviation
from modular_tf.check.repetition import is_leak, looked_at

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_LEAK = 4
"""So many times what a round takes may be gone: an allocator keeps some for later."""


def expect_memory_returned(
    work: Callable[[], None],
    n_bytes: int,
    rounds: int,
    what: str,
    *,
    free: Callable[[], int] = lambda: 0,
) -> None:
    """Allocate and deallocate memory many times, and demand that none is lost.

    Where it is the device's own, there is less of it free, or none left one day. Where it is the
    host's, which is not taken before it is written to, the process grows.

    Args:
        work: One round; it fails where there is no memory.
        n_bytes: What a round takes.
        rounds: How often.
        what: It does, such as `allocate and deallocate`.
        free: Tells how many bytes the device has free, 0 where it does not know.

    Raises:
        Deviation: It gets less from quarter to quarter of the rounds.
    """
    looks = looked_at(work, rounds, lambda: (_address_space(), -free()))
    for held in ([size for size, _ in looks], [taken for _, taken in looks]):
        if is_leak(held, _NO_LEAK * n_bytes):
            raise Deviation(
                f"{what} leak memory",
                expected="as much memory as before",
                found=f"{held[-1] - held[0] >> 20} MiB less, "
                f"after {rounds} times {n_bytes >> 20} MiB",
            )


def _address_space() -> int:
    """Return the size of the process in bytes."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        sizes = (line.split()[1] for line in status if line.startswith("VmSize:"))
        return int(next(sizes)) << 10
