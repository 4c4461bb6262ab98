"""A private directory for one test, and a disk that is full."""

from __future__ import annotations

import resource
from contextlib import contextmanager

import pytest

from modular_tf.service.storage.private_directory import PrivateDirectory


@pytest.fixture
def directory(tmp_path):
    """A directory that is not there yet."""
    return PrivateDirectory(str(tmp_path / "cache" / "modular_tf"))


@pytest.fixture
def limited_files():
    """Let writes fail in their middle, beyond a size that files may have, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextmanager
    def limit(n_bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limit
