"""Names by which libraries need each other and that the dynamic linker would not resolve.

The dynamic linker knows a library by its SONAME and by the paths that it was opened by. A library
that is mapped by descriptor was opened by a path that no other library uses. So a library that is
needed by its file's name, or by a path, would be searched for and mapped a second time, from
whatever file is there by then; or from the original file of a changed copy, which cannot be linked.
A library without code that has such a name and needs the right library prevents that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.linking.library_search import expand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.loading.target import Target


def unresolved_names(targets: Sequence[Target]) -> dict[str, str]:
    """Return the needed names that the dynamic linker would not resolve to the mapped libraries.

    Each target but the last was found by the name of its file, by which another library needs it.

    Args:
        targets: The libraries in the order in which others need them; the plugin is last.

    Returns:
        For each name, as the dynamic linker compares it, the path by which its library is mapped.
    """
    by_file_name: dict[str, list[Target]] = {}
    for target in reversed(targets):  # likewise
        by_file_name.setdefault(os.path.basename(target.file.path), []).append(target)
    found = {
        os.path.basename(target.file.path): target.mapped_as
        for target in targets[:-1]  # of two with one name, the one that was found first
        if target.names.soname != os.path.basename(target.file.path)
    }
    for target in targets:
        for name in target.names.linked:
            for other in by_file_name.get(os.path.basename(name), ()):
                if other.names.soname != name and _leads_to(name, target, other):
                    for compared in expand(name, target.mapped_as.rpartition("/")[0]):
                        found.setdefault(compared, other.mapped_as)
    return found


def _leads_to(name: str, target: Target, other: Target) -> bool:
    """Return whether a needed name was resolved to the other library."""
    paths = map(os.path.normpath, expand(name, os.path.dirname(target.file.path)))
    return any(f"/{os.path.normpath(other.file.path)}".endswith(f"/{path}") for path in paths)
