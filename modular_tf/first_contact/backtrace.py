"""The native frames that a dying process has told, as its user may read them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.first_contact.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_FRAMES = 64
_HOST = (
    "_cffi_backend.",
    "_core.",
    "libffi",
    "libpython",
    "python",
)  # what follows them is the host's own way to the call
_COPY = "/memfd:"
_LONGEST_SHOWN = 1024
_LONGEST_NAME = 200  # of a copy, as `private_copy` gives it


def readable_frames(told: Sequence[Any], files: Iterable[str]) -> tuple[str, ...]:
    """Return frames as `FILE SYMBOL+0xOFFSET`, the innermost first, up to the host's own.

    Args:
        told: As `native/core/crash_report.h` has them; anything, in truth.
        files: The plugin's files, of which private copies may be mapped.
    """
    copies = {_copy_name(file): file for file in files}
    shown = []
    for frame in told[:MOST_FRAMES]:
        try:
            file, symbol, offset = frame
            name, function = _text(file), _text(symbol)
            place = f"{function}+{offset:#x}" if function else f"{offset:#x}"
        except (TypeError, ValueError):
            continue
        if is_host_library(name):
            break
        shown.append(f"{copies.get(_mapped_name(name), name) or 'nowhere'} {place}")
    return tuple(shown)


def is_host_library(path: str) -> bool:
    """Tell whether a mapped file is the host's, by its name."""
    return os.path.basename(path).startswith(_HOST)


def _text(digits: Any) -> str:
    return plain(os.fsdecode(bytes.fromhex(digits)), most=_LONGEST_SHOWN)


def _copy_name(file: str) -> str:
    return os.fsdecode(os.fsencode(os.path.basename(file))[:_LONGEST_NAME])


def _mapped_name(name: str) -> str:
    """Return the name of a private copy, nothing for any other file."""
    if not name.startswith(_COPY):
        return ""
    return name.removeprefix(_COPY).removesuffix(" (deleted)")
