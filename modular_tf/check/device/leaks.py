"""Whether memory that is allocated and deallocated many times is returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import expect

if TYPE_CHECKING:
    from collections.abc import Callable


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
        Deviation: More than half of what was taken is gone.
    """
    work()  # what is made once and kept is no leak
    size_before, free_before = _address_space(), free()
    for _ in range(rounds):
        work()
    gone = max(_address_space() - size_before, free_before - free())
    expect(
        gone < n_bytes * rounds // 2,
        f"{what} leak memory",
        expected="as much memory as before",
        found=f"{gone >> 20} MiB less, after {rounds} times {n_bytes >> 20} MiB",
    )


def _address_space() -> int:
    """Return the size of the process in bytes."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        sizes = (line.split()[1] for line in status if line.startswith("VmSize:"))
        return int(next(sizes)) << 10
