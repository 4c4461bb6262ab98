"""Local directories that processes of checks may fill, and that are gone afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[str]:
    """Make an empty directory for the block, and remove what has become of it.

    Args:
        parent: Where; None for where temporary files are.
    """
    folder = tempfile.mkdtemp(prefix="modular_tf_check-", dir=parent)
    try:
        yield folder
    finally:
        for inner, _, _ in os.walk(folder):  # top down: what was locked is looked into afterwards
            with suppress(OSError):
                os.chmod(inner, stat.S_IRWXU)
        shutil.rmtree(folder, ignore_errors=True)
