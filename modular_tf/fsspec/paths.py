"""The mapping between URIs of plugins and paths of fsspec.

fsspec takes the protocol off: `s3://bucket/key` is `bucket/key`, the bucket stays in the path.
`file` is the one scheme whose paths begin at a root of the machine and may be relative to the
working directory, as in fsspec's own local filesystem.
"""

from __future__ import annotations

import os
from typing import Any

LOCAL_SCHEME = "file"


def root_of(scheme: str) -> str:
    """Return what fsspec calls the root marker: the shortest path of `scheme`."""
    return "/" if scheme == LOCAL_SCHEME else ""


def strip_scheme(scheme: str, path: Any) -> str:
    """Return the path in `scheme` that a URI, a path or a `PathLike` names."""
    text = os.fspath(path)
    for prefix in (f"{scheme}://", f"{scheme}::"):
        if text.startswith(prefix):
            text = text.removeprefix(prefix) or root_of(scheme)
            break
    if scheme == LOCAL_SCHEME:
        text = os.path.abspath(text.removeprefix("file:"))  # lexical, as a URI is
    return text.rstrip("/") or root_of(scheme)


def join(parent: str, name: str) -> str:
    """Return the path of the entry `name` of the directory `parent`."""
    return f"{parent.rstrip('/')}/{name}" if parent else name
