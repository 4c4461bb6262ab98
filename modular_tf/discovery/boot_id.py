"""An identifier of the current start of the machine."""

from __future__ import annotations

from functools import cache

from modular_tf.rules.shortage import raise_shortage

__all__ = ["boot_id"]


@cache
def boot_id() -> str:
    """Return a text that identifies this start of this machine. [any thread]

    Empty where the system has none. Raises `ShortageError`.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as stream:
            return stream.read(64).decode("ascii", "replace").strip()
    except OSError as error:
        raise_shortage(error)
        return ""
