"""Validation of the names in a directory.

A name that is empty, `.`, `..` or holds a slash would lead a walk in circles or out of its tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.filesystem.filesystem import Filesystem


def clean_names(names: Iterable[str], *, plugin: str, uri: str) -> list[str]:
    """Return the names sorted, each once, without the trailing slash some put on directories.

    An object store may list one name twice, as an object and as the folder of others.

    Raises:
        InternalError: A name cannot be that of a child.
    """
    cleaned = set()
    for name in names:
        child = name.removesuffix("/")
        if not child or child in (".", "..") or "/" in child:
            raise InternalError(
                f"get_children {uri!r}: {plugin} gave the name {name!r}, which no child can have",
                plugin=plugin,
                path=uri,
                operation="get_children",
            )
        cleaned.add(child)
    return sorted(cleaned)


def checked_children(fs: Filesystem, uri: str) -> list[str]:
    """Return the validated names of the children of a directory, for any filesystem."""
    return clean_names(fs.get_children(uri), plugin=fs.plugin, uri=uri)
