"""A file without a place on disk, rewritten for each input."""

from __future__ import annotations

import os
from functools import cache


def path_with(content):
    """Return a path that has this content until the next call."""
    fd = _descriptor()
    os.ftruncate(fd, 0)
    os.pwrite(fd, content, 0)
    return f"/proc/self/fd/{fd}"


@cache
def _descriptor():
    return os.memfd_create("fuzzed")
