"""Descriptors of a plugin's temporary files, which it deletes and leaves open."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest

from modular_tf.filesystem.workarounds.azure import close_leaked


@pytest.fixture
def forgotten(tmp_path):
    return partial(close_leaked, rf"{tmp_path}/plugin_\w+")


def _temporary(folder, prefix="plugin_", *, deleted=True):
    descriptor, path = tempfile.mkstemp(prefix=prefix, dir=folder)
    if deleted:
        Path(path).unlink()
    return descriptor


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_what_is_forgotten_is_closed(forgotten, tmp_path):
    descriptors = [_temporary(tmp_path) for _ in range(3)]

    forgotten()
    forgotten()

    assert not any(map(_is_open, descriptors))


def test_all_else_stays_open(forgotten, tmp_path):
    (tmp_path / "plugin_written").touch()
    kept = [
        _temporary(tmp_path, deleted=False),
        _temporary(tmp_path, prefix="other_plugin_"),
        _temporary(tmp_path, prefix="plugin_.extended_"),
        os.open(tmp_path / "plugin_written", os.O_WRONLY),
    ]
    (tmp_path / "plugin_written").unlink()
    reading, writing = os.pipe()

    forgotten()

    for descriptor in [*kept, reading, writing]:
        assert _is_open(descriptor)
        os.close(descriptor)
