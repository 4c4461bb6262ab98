"""Who could change a file: trusted users and groups, and the owner and mode of all on its path.

Root is trusted, and the user of this process. So is everybody who can change this package: their
code runs here already, and to refuse their plugins would protect nothing. That lets containers
pass whose packages belong to some user of the image while root runs them, and shared
installations that a group of people maintains.
"""

from __future__ import annotations

import errno
import os
import stat
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage, require_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.discovery.trust.policy import TrustPolicy

# Numbers that Debian and the LSB leave to the system. `staff` (50) is one, which owns /usr/local
# there; `users` (100), to which people belong, is not.
_SYSTEM_GROUPS = range(100)
_MOST_LINKS = 40  # as the kernel
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_UID_MAP = "/proc/self/uid_map"
_OVERFLOW_UID = "/proc/sys/kernel/overflowuid"


class TrustedWriters(NamedTuple):
    """Users and groups by number."""

    users: frozenset[int]
    groups: frozenset[int] = frozenset()  # besides those that have trusted members only

    def includes_group(self, group: int) -> bool:
        """Return whether only trusted users can be in a group."""
        if group in self.groups or group == 0:
            return True
        names, members = _group(group)
        if any(_user_number(member) not in self.users for member in members):
            return False
        if group in _SYSTEM_GROUPS and names:
            return _primary_members(group) <= self.users
        # A group of one's own, as most systems give each user; where users have no names, as in
        # containers, the number decides.
        return (
            any(_user_name(user) in names for user in self.users) if names else group in self.users
        )

    def __str__(self) -> str:
        return " and ".join(user_text(user) for user in sorted(self.users))


def trusted_writers(policy: TrustPolicy) -> TrustedWriters:
    """Return the users and groups that this process trusts."""
    chain = [status for path in package_directories() for status in _chain(path)]
    maintainers = (status.st_gid for status in chain if status.st_mode & stat.S_IWGRP)
    return TrustedWriters(
        users=frozenset((*_roots(), os.geteuid(), *_numbers(policy.owners, _user_number))).union(
            status.st_uid for status in chain
        ),
        groups=frozenset((*maintainers, *_numbers(policy.groups, _group_number))),
    )


def user_text(number: int) -> str:
    """Return a user's name and number for messages."""
    name = _user_name(number)
    return f"{name} (user {number})" if name else f"user {number}"


def group_text(number: int) -> str:
    """Return a group's name and number for messages."""
    names, _ = _group(number)
    return f"group {names[0]} ({number})" if names else f"group {number}"


@cache
def _user_name(number: int) -> str | None:
    """Return the name of a user, None if this system knows none."""
    import pwd  # noqa: PLC0415  (for what is refused, or shared, alone)

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        require_descriptor()  # without one the system's list cannot be read
        return None


def _chain(path: str) -> Iterator[os.stat_result]:
    """Yield the status of a directory and of those above it; what cannot be seen is left out."""
    above, at = "", os.path.realpath(path)
    while at != above:
        try:
            yield os.stat(at)
        except OSError as error:
            raise_shortage(error)
        above, at = at, os.path.dirname(at)


def _roots() -> Iterable[int]:
    """Return the user numbers that root's files have here.

    In a user namespace without root, all files of users from outside have one number, root's
    among them.
    """
    try:
        with open(_UID_MAP, encoding="utf-8") as stream:
            ranges = [line.split() for line in stream]
        if any(int(first) == 0 for first, *_ in ranges):
            return (0,)
        with open(_OVERFLOW_UID, encoding="utf-8") as stream:
            return (0, int(stream.read()))
    except (OSError, ValueError) as error:
        raise_shortage(error)
        return (0,)


def _numbers(named: Iterable[str | int], number_of: Callable[[str], int | None]) -> Iterator[int]:
    """Yield numbers; names that this system does not know are left out."""
    numbers = (number_of(entry) if isinstance(entry, str) else entry for entry in named)
    yield from (number for number in numbers if number is not None)


def _user_number(name: str) -> int | None:
    import pwd  # noqa: PLC0415  (few configurations name users)

    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        require_descriptor()  # without one the system's list cannot be read
        return None


def _group_number(name: str) -> int | None:
    import grp  # noqa: PLC0415  (few configurations name groups)

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        require_descriptor()  # without one the system's list cannot be read
        return None


@cache
def _group(number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the name of a group, if it has one, and its listed members."""
    import grp  # noqa: PLC0415  (for what a group may write to alone)

    try:
        found = grp.getgrgid(number)
    except KeyError:
        require_descriptor()
        return (), ()
    return (found.gr_name,), tuple(found.gr_mem)


def _primary_members(group: int) -> set[int]:
    import pwd  # noqa: PLC0415  (for what a system's group may write to alone)

    users = pwd.getpwall()
    if not users:
        require_descriptor()
    return {entry.pw_uid for entry in users if entry.pw_gid == group}


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
        """Follow an absolute path to a directory that files lie in, as the kernel does."""
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
