"""A check whether an untrusted user could have changed one file, link or directory."""

from __future__ import annotations

import errno
import os
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from modular_tf.discovery.trust.writers import group_text, user_text
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from modular_tf.discovery.trust.writers import TrustedWriters

__all__ = ["Rights"]

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Rights:
    """Checks owner and mode; what a group may write to must have no access list. [any thread]"""

    def __init__(self, writers: TrustedWriters, allow_writable: tuple[str, ...] = ()) -> None:
        self.writers = writers
        self._allow_writable = allow_writable

    def offence_of(self, path: str, status: os.stat_result) -> Violation | None:
        """Return what is wrong with a file, or with a directory that files lie in."""
        if status.st_uid in self.writers.users and not status.st_mode & _BY_OTHERS:
            return None  # as most
        if (offence := self.owner_offence(path, status)) is not None:
            return offence
        mode, group = stat.S_IMODE(status.st_mode), status.st_gid
        if not mode & _BY_OTHERS or any(fnmatchcase(path, glob) for glob in self._allow_writable):
            return None
        if mode & stat.S_IWOTH:
            message = f"{path} has mode {mode:04o}, so anybody may write to it"
            return Violation(rules.WORLD_WRITABLE, message, path=path)
        who = group_text(group)
        if _has_access_list(path):
            who = "somebody, by an access control list,"
        elif self.writers.includes_group(group):
            return None
        message = f"{path} has mode {mode:04o}; {who} may write to it"
        return Violation(rules.SHARED_WRITING, message, path=path)

    def ancestor_offence(self, path: str, status: os.stat_result) -> Violation | None:
        """Return what is wrong with a directory above the one that files lie in.

        In a sticky directory others can add names, but can neither rename nor remove the files of
        other users, as those on the path of a plugin are.
        """
        if status.st_mode & stat.S_ISVTX:
            return self.owner_offence(path, status)
        return self.offence_of(path, status)

    def owner_offence(self, path: str, status: os.stat_result) -> Violation | None:
        """Return what is wrong with the owner of a link, which has no other rights."""
        if status.st_uid in self.writers.users:
            return None
        message = f"{path} belongs to {user_text(status.st_uid)}, expected {self.writers}"
        return Violation(rules.OWNER, message, path=path)


def _has_access_list(path: str) -> bool:
    """Return whether a list extends the mode, or cannot be read.

    The group bits of the mode are its mask then: where they forbid to write, no entry allows it.
    """
    try:
        os.getxattr(path, "system.posix_acl_access", follow_symlinks=False)
    except OSError as error:
        raise_shortage(error)
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True
