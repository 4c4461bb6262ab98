"""The mounted file systems, and whether they report every change or must be polled."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Mount", "must_be_polled", "read_mounts"]

_MOUNTINFO = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")

# What other machines, hypervisors or user programs change without the kernel here being told.
# Changes through an overlay are told; so it is not among them.
_REMOTE = frozenset({
    "9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs",
    "vboxsf", "virtiofs", "vmhgfs", "wekafs",
})  # fmt: skip


class Mount(NamedTuple):
    """One mounted file system.

    Attributes:
        point: Where it is mounted.
        kind: Its type, as `ext4` or `fuse.sshfs`.
    """

    point: str
    kind: str


def must_be_polled(path: str, mounts: Iterable[Mount]) -> bool:
    """Return whether changes at a path can happen that inotify does not report. [any thread]

    Args:
        path: A file or directory, which need not exist yet.
        mounts: As `read_mounts` gives them; of one mount point the last counts.
    """
    kind, length = "", -1
    real = os.path.realpath(path)
    for mount in mounts:
        if len(mount.point) >= length and _is_below(real, mount.point):
            kind, length = mount.kind, len(mount.point)
    return kind.partition(".")[0] in _REMOTE


def read_mounts(file: str = _MOUNTINFO) -> list[Mount]:
    """Return the mounts that this process sees (proc(5)); none if they cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    return [mount for mount in map(_parse, lines) if mount is not None]


def _parse(line: str) -> Mount | None:
    fields, _, rest = line.partition(" - ")
    words, kind = fields.split(" "), rest.partition(" ")[0]
    at_point = 4
    if len(words) <= at_point or not kind:
        return None
    point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), words[at_point])
    return Mount(point, kind)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
