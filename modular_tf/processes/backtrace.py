"""The native frames of a crash, as users read them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from modular_tf.codec import between, decode
from modular_tf.processes.plain_text import plain

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
_MOST_OF_A_FILE, _MOST_OF_A_SYMBOL = 700, 300  # together as much as `Incident` keeps of a frame
_MOST_DIGITS = 1 << 14
_Address: Any = Annotated[int, between(0, (1 << 64) - 1)]
_LONGEST_NAME = 200  # of a copy, as `private_copy` gives it


def readable_frames(told: Sequence[Any], files: Iterable[str]) -> tuple[str, ...]:
    """Return frames as `FILE SYMBOL+0xOFFSET`, the innermost first, up to the host's own.

    They should come as `native/core/process_end.h` has them, but may be anything; of the plugin's
    files private copies may be mapped.
    """
    copies = {_copy_name(file): file for file in files}
    shown = []
    for frame in told[:MOST_FRAMES]:
        try:
            file, symbol, offset = frame
            name = plain(_text(file)[-_MOST_OF_A_FILE:], _MOST_OF_A_FILE)
            function = plain(_text(symbol), _MOST_OF_A_SYMBOL)
            address = f"{decode(_Address, offset):#x}"
        except (TypeError, ValueError):
            continue
        if is_host_library(name):
            break
        place = f"{function}+{address}" if function else address
        shown.append(f"{copies.get(_mapped_name(name), name) or 'nowhere'} {place}")
    return tuple(shown)


def is_host_library(path: str) -> bool:
    """Return whether a mapped file is the host's, by its name."""
    return os.path.basename(path).startswith(_HOST)


def _text(digits: Any) -> str:
    if not isinstance(digits, str):  # a dictionary has slices as keys from Python 3.12 on
        raise TypeError
    return os.fsdecode(bytes.fromhex(digits[:_MOST_DIGITS]))


def _copy_name(file: str) -> str:
    return os.fsdecode(os.fsencode(os.path.basename(file))[:_LONGEST_NAME])


def _mapped_name(name: str) -> str:
    """Return the name of a private copy, nothing for any other file."""
    if not name.startswith(_COPY):
        return ""
    return name.removeprefix(_COPY).removesuffix(" (deleted)")
