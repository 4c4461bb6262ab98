"""Signals as people know them."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11; `signal 40` for a number without a name, as real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_in_full(number: int) -> str:
    """Return `SIGSEGV (signal 11)`; `signal 40` for a number without a name."""
    name = signal_name(number)
    return name if name.endswith(f" {number}") else f"{name} (signal {number})"
