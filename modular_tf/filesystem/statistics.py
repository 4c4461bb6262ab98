"""The statistics of files, and counts of a deletion."""

from __future__ import annotations

from typing import NamedTuple


class FileStatistics(NamedTuple):
    """The result of `stat` (`TF_FileStatistics`).

    Attributes:
        length: Bytes; meaningless for a directory.
        mtime_nsec: Time of last change, nanoseconds since 1970; 0 or less where unknown.
        is_directory: Whether it is one.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


class DeletedCounts(NamedTuple):
    """The numbers of files and directories that `delete_recursively` could not delete."""

    undeleted_files: int
    undeleted_dirs: int
