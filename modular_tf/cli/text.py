"""Text that came from plugins and stores, made fit for a terminal."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

from modular_tf.rules import written_out

if TYPE_CHECKING:
    from collections.abc import Mapping

_BYTES = {code: f"\\x{code - 0xDC00:02x}" for code in range(0xDC80, 0xDD00)}  # surrogateescape
_WITHOUT_COLOUR = ("dumb", "unknown")


def printable(text: str) -> str:
    """Return `text` with control characters and broken bytes written out.

    A file name may hold escape sequences; a terminal must not obey them.
    """
    return text if text.isprintable() else written_out(text).translate(_BYTES)


@cache
def _controls() -> dict[int, str]:
    """Return how control characters are written out, by their codes."""
    # Those that end a field or line, or that a terminal obeys; URIs of oss:// have the first ones.
    codes = (0, *range(0x07, 0x20), *range(0x7F, 0xA0))
    return {code: chr(code).encode("unicode_escape").decode("ascii") for code in codes}


def without_controls(text: str) -> str:
    """Return `text` with control characters written out, so that a name stays one field.

    Bytes that are no text stay what they are: programs find the file by them.
    """
    return text.translate(_controls())


def raw(text: str) -> bytes:
    """Return the bytes that a name stands for, undecodable ones as they were.

    Text for which the encoding of file names has no bytes is written out.
    """
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return printable(text).encode(sys.getfilesystemencoding(), "backslashreplace")


def when(mtime_nsec: int) -> str:
    """Return a modification time in local time, "-" where a plugin does not know it."""
    if mtime_nsec <= 0:
        return "-"
    from datetime import datetime  # noqa: PLC0415  (for listings of files only)

    local = datetime.fromtimestamp(mtime_nsec / 1e9).astimezone()
    return local.isoformat(sep=" ", timespec="seconds")


def size(n_bytes: float) -> str:
    """Return a number of bytes in a unit that is easy to read."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:  # noqa: PLR2004
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


def counted(count: int, what: str) -> str:
    """Return a number of things, as "1 kernel" or "2 kernels"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def has_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to write colours.

    Args:
        environment: NO_COLOR refuses them, FORCE_COLOR asks for them (in a pipe too), and TERM may
            name a terminal that has none; NO_COLOR counts most, TERM least.
        terminal: Whether a terminal shows what is written.
    """
    if environment.get("NO_COLOR"):
        return False
    if forced := environment.get("FORCE_COLOR"):
        return forced != "0"
    return terminal and environment.get("TERM", "dumb") not in _WITHOUT_COLOUR
