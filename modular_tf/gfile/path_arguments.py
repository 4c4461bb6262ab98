"""Path arguments: text, bytes or path objects, as `tf.io.gfile` takes them."""

from __future__ import annotations

import os
import posixpath
from typing import Any, TypeAlias

PathArgument: TypeAlias = "str | bytes | bytearray | os.PathLike[str] | os.PathLike[bytes]"
"""Anything that names a file: a URI, a plain path, or an object that has one."""


def as_uri(path: object) -> str:
    """Return `path` as text, with surrogateescape for bytes that are not UTF-8.

    Raises:
        TypeError: It is none of the types of `PathArgument`.
    """
    if isinstance(path, str):
        return path
    if isinstance(path, (bytes, bytearray)):
        return path.decode("utf-8", "surrogateescape")
    if isinstance(path, os.PathLike):
        return as_uri(os.fspath(path))
    raise TypeError(f"a path is text, bytes or a path object; found {path!r}")


def join(path: Any, *paths: Any) -> Any:
    """Join parts of a path, as `os.path.join` does; of a URI, always by `/`.

    An absolute part on the right replaces what stands before it, host and scheme included
    (TensorFlow's rule).

    Returns:
        Text, or bytes if the parts are bytes.
    """
    if "://" in as_uri(path)[1:]:
        return posixpath.join(path, *paths)
    return os.path.join(path, *paths)  # pathlib would fold the slashes of a URI
