"""Files with owners, modes and access control lists, and what trust says of them."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.candidate import Candidate, Source
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.paths import trusted_writers
from modular_tf.discovery.trust.policy import TrustPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.discovery.trust.policy import TrustVerdict

STRANGER = 54321  # a user and a group that no system has


def candidate(path: Path | str, source: Source = Source.ARGUMENT, **facts) -> Candidate:
    """Return a file as discovery would find it."""
    found = Path(path).stat()
    known = {"origin": "test", "distribution": None, "name": "x", **facts}
    return Candidate(
        path=str(path),
        real_path=os.path.realpath(path),
        source=source,
        identity=(found.st_dev, found.st_ino),
        **known,
    )


def judge(path: Path | str, policy: TrustPolicy | None = None, **options) -> TrustVerdict:
    """Judge one file that an argument names."""
    return TrustJudge(policy or TrustPolicy(), **options).judge(candidate(path))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a directory of ours that holds a library."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    (folder / "libx.so").write_bytes(b"not yet a library")
    return folder


@pytest.fixture
def library(home: Path) -> Path:
    """Return a library in a directory of ours."""
    return home / "libx.so"


@pytest.fixture
def give_to(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a file, link or directory belong to another user or group.

    Who may not do that is shown files that belong to them.
    """
    owners: dict[str, dict[int, int]] = {}
    lstat = os.lstat

    def shown(path):
        status = lstat(path)
        changes = owners.get(os.fspath(path), {})
        times = {name: getattr(status, name) for name in ("st_mtime_ns", "st_ctime_ns")}
        return os.stat_result((changes.get(i, value) for i, value in enumerate(status)), times)

    def give(path: Path, *, user: int = -1, group: int = -1) -> None:
        try:
            mode = lstat(path).st_mode
            os.chown(path, user, group, follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(mode)
        except PermissionError:
            changes = {4: user, 5: group}
            owners[str(path)] = {i: number for i, number in changes.items() if number >= 0}
            monkeypatch.setattr(os, "lstat", shown)

    return give


@pytest.fixture
def give_list(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give a file an access control list; where the file system has none, let it seem so."""
    lists: dict[str, bytes] = {}
    getxattr = os.getxattr

    def shown(path, attribute, **options):
        if os.fspath(path) in lists:
            return lists[os.fspath(path)]
        return getxattr(path, attribute, **options)

    def give(path: Path, *entries: tuple[int, int, int]) -> None:
        data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        try:
            os.setxattr(path, "system.posix_acl_access", data)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM):
                raise
            mask = next(allowed for tag, allowed, _ in entries if tag == 0x10)
            path.chmod(path.stat().st_mode & ~0o070 | mask << 3)
            lists[str(path)] = data
            monkeypatch.setattr(os, "getxattr", shown)

    return give


@pytest.fixture
def own_group() -> int:
    """Return a group that may write to files of ours without harm: the group of root."""
    assert trusted_writers(TrustPolicy()).includes_group(0)
    return 0
