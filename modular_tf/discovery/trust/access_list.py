"""The users and groups that may write to a file by its POSIX access control list.

Where a file has such a list, the group bits of its mode are the list's mask: without write
permission for the group no entry of the list grants it. So only files with group permission to
write need this check.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import NamedTuple

__all__ = ["ListedWriters", "listed_writers"]

_ATTRIBUTE = "system.posix_acl_access"
_VERSION = 2
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")  # tag, permissions, user or group number
_USER, _OWNING_GROUP, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 2
_NO_LIST = (errno.ENODATA, errno.ENOTSUP)


class ListedWriters(NamedTuple):
    """The users and groups that may write besides the owner.

    Attributes:
        owning_group: Whether the file's group may.
        users: Other users by number.
        groups: Other groups by number.
    """

    owning_group: bool
    users: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()


def listed_writers(path: str) -> ListedWriters:
    """Return who may write to a file whose group bits allow writing.

    Where there is no list, that is its group.

    Raises:
        OSError: The list cannot be read.
    """
    try:
        data = os.getxattr(path, _ATTRIBUTE, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LIST:
            return ListedWriters(owning_group=True)
        raise
    return _read(data)


def _read(data: bytes) -> ListedWriters:
    body = data[_HEADER.size :]
    if data[: _HEADER.size] != _HEADER.pack(_VERSION) or len(body) % _ENTRY.size:
        return ListedWriters(owning_group=True)
    entries = list(_ENTRY.iter_unpack(body))
    mask = next((allowed for tag, allowed, _ in entries if tag == _MASK), _WRITE)
    writers = [(tag, number) for tag, allowed, number in entries if allowed & mask & _WRITE]
    return ListedWriters(
        owning_group=any(tag == _OWNING_GROUP for tag, _ in writers),
        users=tuple(number for tag, number in writers if tag == _USER),
        groups=tuple(number for tag, number in writers if tag == _GROUP),
    )
