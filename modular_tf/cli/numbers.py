"""Numbers on the command line, as argparse wants them read."""

from __future__ import annotations

from argparse import ArgumentTypeError


def count(text: str) -> int:
    """Read a whole number from 1 on."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return value


def factor(text: str) -> float:
    """Read a number above 0 that something is multiplied by."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return value
