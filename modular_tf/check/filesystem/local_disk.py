"""What can be done to a store that is a local disk, behind the plugin's back."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.check.filesystem.raw_paths import default_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.ground import FilesystemGround


def local_path(ground: FilesystemGround, uri: str) -> str | None:
    """Return the local file or directory that a URI stands for.

    Args:
        ground: Where it stands.
        uri: Of something that was made through the plugin.

    Returns:
        Its path; None where the plugin's name for it is no path of the local disk, or the files
        are not the check's own.
    """
    if ground.target.options.prepared:
        return None
    translates = ground.subject.offers("translate_name")
    name = ground.subject.translate_name(uri).value if translates else default_name(uri)
    return name if name and os.path.isabs(name) and os.path.exists(name) else None


@contextmanager
def file_size_limit(most: int) -> Iterator[None]:
    """Let no file of this process become longer than `most` bytes; writes beyond fail (EFBIG).

    Python ignores SIGXFSZ, which would end the process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
