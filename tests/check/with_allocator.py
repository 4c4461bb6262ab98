"""The mark of tests that need the checking allocator, which is built wherever glibc is."""

from __future__ import annotations

import platform

import pytest

with_allocator = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc has an allocator to build on"
)
