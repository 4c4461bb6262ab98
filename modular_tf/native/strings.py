"""Conversion of text at the C boundary: NUL-terminated bytes without a stated encoding.

UTF-8 with surrogateescape both ways, so that every name a plugin gives can be handed back to it.
"""

from __future__ import annotations

from typing import Any

from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi, lib

MAX_STRING = 1 << 20


def encode(text: str) -> bytes:
    """Return `text` as a C string's bytes, without the NUL.

    `InvalidArgumentError` if it holds a NUL, which would cut it short in C, or a half of a
    surrogate pair that stands for no byte; `TypeError` if it is not a `str`.
    """
    try:
        if "\0" in text:  # five times as fast as to look for it in the bytes
            raise InvalidArgumentError(f"{text!r} holds a NUL character", path=text)
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{text!r} has no bytes: {error.reason}", path=text) from None
    except (TypeError, AttributeError):
        raise TypeError(f"expected a str, found {text!r}") from None


def decode(raw: bytes) -> str:
    """Return the text of bytes that came from a plugin."""
    return raw.decode("utf-8", "surrogateescape")


def decode_pointer(pointer: Any) -> str | None:
    """Copy the string at a C pointer of the host's own; NULL gives None."""
    return decode(ffi.string(pointer)) if pointer else None


def read_bytes(pointer: Any) -> bytes | None:
    """Copy the string at a pointer that a plugin gave; None where no string can be read there.

    The plugin may change or unmap it meanwhile: it is measured once, and what is copied counts.
    `pointer` may also be an address.
    """
    source = ffi.cast("char *", pointer)
    length = lib.mtf_try_strlen(source, MAX_STRING)
    if length < 0:
        return None
    copy = bytearray(length)
    if not lib.mtf_try_read(source, ffi.from_buffer("char[]", copy), length):
        return None
    return bytes(copy.partition(b"\0")[0])


def read_string(pointer: Any) -> str | None:
    """Copy the string at a pointer that a plugin gave, as text; None as for `read_bytes`."""
    raw = read_bytes(pointer)
    return None if raw is None else decode(raw)
