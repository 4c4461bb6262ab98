"""Copying that cannot destroy what it copies.

A copy opens its target for writing before it has read all of its source. Where both are one file,
TensorFlow loses the content and reports success; here that is found out first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError
from modular_tf.filesystem import defaults
from modular_tf.filesystem.uri import basename, join_path

if TYPE_CHECKING:
    from modular_tf.filesystem.files import RandomAccessFile
    from modular_tf.filesystem.filesystem import Filesystem

COMPARED_BLOCK = 1 << 20


def copy_file(source_fs: Filesystem, source: str, target_fs: Filesystem, target: str) -> None:
    """Copy a file within a filesystem or between two, replacing the target.

    Raises:
        FailedPreconditionError: The source is a directory.
        NotFoundError: The source, or the directory of the target, does not exist.
    """
    if source_fs is target_fs:
        source_fs.copy_file(source, target)
    else:
        _copy_between(source_fs, source, target_fs, target)


def _copy_between(source_fs: Filesystem, source: str, target_fs: Filesystem, target: str) -> None:
    """Copy through this process; a target that is a directory is copied into."""
    with suppress(ModularTFError):
        if target_fs.is_directory(target):
            target = join_path(target, basename(source))
    # Two schemes of one plugin may reach one file by two names, or by a link.
    if source_fs.plugin != target_fs.plugin or not _are_equal(source_fs, source, target_fs, target):
        defaults.copy_file(source_fs, source, target_fs, target)


def _are_equal(a_fs: Filesystem, a: str, b_fs: Filesystem, b: str) -> bool:
    """Compare the bytes of two files; a file that cannot be read has none."""
    try:
        if a_fs.stat(a).length != b_fs.stat(b).length:
            return False
        with a_fs.new_random_access_file(a) as left, b_fs.new_random_access_file(b) as right:
            return _hold_equal_bytes(left, right)
    except ModularTFError:
        return False


def _hold_equal_bytes(left: RandomAccessFile, right: RandomAccessFile) -> bool:
    offset = 0
    while block := left.read(offset, COMPARED_BLOCK):
        if block != right.read(offset, COMPARED_BLOCK):
            return False
        offset += len(block)
    return not right.read(offset, 1)
