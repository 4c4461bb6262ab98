"""Trusted users and groups, who may change the files of plugins.

Root is trusted, and the user of this process. So is everybody who can change this package: their
code runs here already, and to refuse their plugins would protect nothing. That lets containers
pass whose packages belong to some user of the image while root runs them, and shared
installations that a group of people maintains.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.rules.shortage import raise_shortage, require_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.discovery.trust.policy import TrustPolicy

__all__ = ["TrustedWriters", "group_text", "trusted_writers", "user_text"]

# Numbers that Debian and the LSB leave to the system. `staff` (50) is one, which owns /usr/local
# there; `users` (100), to which people belong, is not.
_SYSTEM_GROUPS = range(100)
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
        # containers, the number tells.
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
    at = os.path.realpath(path)
    while True:
        try:
            yield os.stat(at)
        except OSError as error:
            raise_shortage(error)
        above = os.path.dirname(at)
        if above == at:
            return
        at = above


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
    for entry in named:
        number = number_of(entry) if isinstance(entry, str) else entry
        if number is not None:
            yield number


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
