"""Opening and creating this package's directories only if their paths can be trusted.

The files in them decide which plugins run untried. So each directory and link of the path must
have been made by users whom this process trusts, as for plugins. A missing directory is created
with access for the user only, whatever the umask says.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from modular_tf.concurrency.owned_file import open_owned_directory
from modular_tf.discovery.trust.paths import PathJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.discovery.trust.rights import Rights
from modular_tf.discovery.trust.writers import TrustedWriters, trusted_writers

if TYPE_CHECKING:
    import select

    from modular_tf.discovery.trust.paths import JudgedPath

_FOR_FILES = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOR_DIRECTORIES = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW  # need not be readable
_MODE = 0o700


class UntrustedDirectoryError(OSError):
    """A user whom this process does not trust can change the directory or its path."""


def open_trusted(path: str, *, make: bool) -> select.epoll:
    """Return the owner of a descriptor of a trusted directory.

    Args:
        path: An absolute path.
        make: Whether it, and what is missing above it, is made.

    Raises:
        UntrustedDirectoryError: An untrusted user can change it; the message names the user.
        OSError: It is not there, or cannot be made or opened.
        ValueError: No directory can have that path.
    """
    if not os.path.isabs(path):
        raise ValueError(f"expected an absolute path, found {path!r}")
    judge = _judge()
    try:
        judged = judge.directory(path)
    except FileNotFoundError:
        if not make:
            raise
        _make(path, judge)
        judged = judge.directory(path)
    return _opened(judged, _FOR_FILES)


def why_untrusted(path: str) -> str | None:
    """Return why a directory is not trusted, None if it is; the path need not exist completely."""
    judge = _judge()
    look = judge.directory
    while True:
        try:
            return _offence_of(look(path))
        except FileNotFoundError:
            path, look = os.path.dirname(path), judge.above
        except OSError as error:
            return f"{path} cannot be looked at: {error.strerror}"


def _make(path: str, judge: PathJudge) -> None:
    """Create a directory and its missing parents, each relative to an open directory."""
    above, name = os.path.split(path)
    try:
        judged = judge.above(above)
    except FileNotFoundError:
        _make(above, judge)
        judged = judge.above(above)
    # Another process may be faster; what it made is judged next.
    with _opened(judged, _FOR_DIRECTORIES) as parent, suppress(FileExistsError):
        os.mkdir(name, _MODE, dir_fd=parent.fileno())
        os.chmod(name, _MODE, dir_fd=parent.fileno())  # the umask may leave its owner out


def _opened(judged: JudgedPath, flags: int) -> select.epoll:
    """Open the directory that was checked, and no other."""
    if (offence := _offence_of(judged)) is not None:
        raise UntrustedDirectoryError(errno.EPERM, offence)
    directory = open_owned_directory(judged.real_path, flags)
    if not os.path.samestat(os.fstat(directory.fileno()), judged.status):
        directory.close()
        raise OSError(errno.ESTALE, "it was replaced while it was looked at", judged.real_path)
    return directory


def _offence_of(judged: JudgedPath) -> str | None:
    return None if judged.offence is None else judged.offence.message


def _judge() -> PathJudge:
    return PathJudge(Rights(_writers(os.geteuid())))


@lru_cache(maxsize=4)
def _writers(user: int) -> TrustedWriters:
    """Return the users whom this process trusts: as for plugins; root trusts only root.

    Where `sudo` leaves root the home of a user, it would follow links that the user made, and leave
    files there that the user could neither read nor replace. In a user namespace / may belong to
    root of another one, who is shown as another user and can change all there is.
    """
    if user == 0:
        return TrustedWriters(users=frozenset((0, os.stat("/").st_uid)))
    return trusted_writers(TrustPolicy())
