"""Names by which libraries need each other, and to which no library answers by itself.

The dynamic linker knows a library by its SONAME and by the names that it was opened under. What is
mapped by descriptor was opened under none that others know. So a library that is needed by its
file's name, or by a path, would be looked for and mapped once more, from whatever file is there by
then; and from the file itself where a copy was mapped that differs, which cannot be linked. A
library without code that has such a name and needs the right one prevents that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.linking.library_search import expand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.loading.target import Target


def unanswered_names(targets: Sequence[Target]) -> dict[str, str]:
    """Return the names by which libraries are needed, and to which they do not answer.

    Each but the last was found by the name of its file, which is how something needs it: one of the
    others, or a library that is not mapped by descriptor.

    Args:
        targets: The libraries, those that others need first, and the plugin last.

    Returns:
        For each name, as the dynamic linker compares it, the path by which the one is mapped that
        has to answer to it.
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
    """Tell whether it is the other library by which a need was met."""
    paths = map(os.path.normpath, expand(name, os.path.dirname(target.file.path)))
    return any(f"/{os.path.normpath(other.file.path)}".endswith(f"/{path}") for path in paths)
