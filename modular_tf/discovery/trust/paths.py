"""Trust of a path: of each directory above a file, and of each link and its target."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from modular_tf.discovery.trust.rights import Rights
    from modular_tf.rules import Violation

__all__ = ["JudgedPath", "PathJudge"]

_MOST_LINKS = 40  # as the kernel


class JudgedPath(NamedTuple):
    """The real path of a file, and the first thing on it that an untrusted user can change."""

    real_path: str
    status: os.stat_result
    offence: Violation | None


class PathJudge:
    """Checks the trust of paths; results about directories are kept as long as it lives.

    So it is for one pass over the candidates. [any thread, one at a time]
    """

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._directories: dict[str, JudgedPath] = {}
        self._ancestors: dict[str, Violation | None] = {}

    def judge(self, path: str) -> JudgedPath:
        """Follow an absolute path to a file as the kernel does; `OSError` if it leads nowhere."""
        folder, _, name = path.rpartition("/")  # as `os.path.split`, in a fraction of the time
        above = self.directory(folder or "/")
        offence = above.offence
        real_path = f"{above.real_path.rstrip('/')}/{name}"
        status = os.lstat(real_path)
        if stat.S_ISLNK(status.st_mode):
            real_path, status, beyond = self._follow(path)
            offence = offence or beyond or self.directory(os.path.dirname(real_path)).offence
        if offence is None and stat.S_ISREG(status.st_mode):
            offence = self._rights.offence_of(real_path, status)
        return JudgedPath(real_path, status, offence)

    def directory(self, path: str) -> JudgedPath:
        """Follow an absolute path to a directory that files lie in, as the kernel does.

        Raises `OSError` if it leads nowhere.
        """
        found = self._directories.get(path)
        if found is None:
            real_path, status, offence = self._follow(path)
            offence = offence or self._rights.offence_of(real_path, status)
            found = self._directories[path] = JudgedPath(real_path, status, offence)
        return found

    def above(self, path: str) -> JudgedPath:
        """Follow an absolute path to a directory above one that files lie in; see `directory`."""
        real_path, status, offence = self._follow(path)
        return JudgedPath(real_path, status, offence or self._ancestor_offence(real_path))

    def _follow(self, path: str) -> JudgedPath:
        """Follow a path; check the links on it and all directories but the last."""
        at, offence = "/", None
        pending = _parts(path)
        n_links = 0
        while pending:
            name = pending.pop()
            if name == "..":  # what is above was passed on the way here
                at = os.path.dirname(at)
                continue
            offence = offence or self._ancestor_offence(at)
            child = os.path.join(at, name)
            status = os.lstat(child)
            if not stat.S_ISLNK(status.st_mode):
                at = child
                continue
            n_links += 1
            if n_links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            offence = offence or self._rights.owner_offence(child, status)
            target = os.readlink(child)
            at = "/" if target.startswith("/") else at
            pending += _parts(target)
        return JudgedPath(at, os.lstat(at), offence)

    def _ancestor_offence(self, path: str) -> Violation | None:
        if path not in self._ancestors:
            self._ancestors[path] = self._rights.ancestor_offence(path, os.lstat(path))
        return self._ancestors[path]


def _parts(path: str) -> list[str]:
    """Return the names in a path, the last first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
