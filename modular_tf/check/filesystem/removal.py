"""Removing what checks left, whatever the plugin offers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Unsupported
from modular_tf.filesystem.uri import join_path

if TYPE_CHECKING:
    from modular_tf.check.filesystem.access import Operations

_DEEPEST = 64
_STRANGE = frozenset({"", ".", ".."})


def remove_tree(subject: Operations, uri: str, depth: int = 0) -> None:
    """Delete a directory with all that is in it, as far as that works.

    Raises:
        Unsupported: The plugin cannot delete.
        Deviation: It did harm meanwhile.
    """
    if subject.has("delete_recursively"):
        answer = subject.delete_recursively(uri)
        if answer.ok:
            return
    for name in _names(subject, uri) if depth < _DEEPEST else []:
        child = join_path(uri, name)
        if not subject.delete_file(child).ok:
            remove_tree(subject, child, depth + 1)
    subject.delete_dir(uri)


def _names(subject: Operations, uri: str) -> list[str]:
    """Return the children that cannot lead out of the directory, nor back to it."""
    try:
        listed = subject.get_children(uri).value or []
    except Unsupported:
        return []
    names = {name.rstrip("/") for name in listed if name}
    return sorted(name for name in names - _STRANGE if "/" not in name)
