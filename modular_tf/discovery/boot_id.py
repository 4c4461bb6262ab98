"""Which start of the machine this is."""

from __future__ import annotations

from functools import cache

__all__ = ["boot_id"]


@cache
def boot_id() -> str:
    """Return a text that another start of this or another machine does not have. [any thread]

    Empty where the system has none.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as stream:
            return stream.read(64).decode("ascii", "replace").strip()
    except OSError:
        return ""
