"""What `binding` has mapped, once for all services of the process."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.loading.origin_folder import Mirrors

if TYPE_CHECKING:
    from modular_tf.loading.opened_libraries import OpenedByName
    from modular_tf.native.library import Library, MappedObject


class Bound(NamedTuple):
    """A mapped file."""

    library: Library
    mapped_as: str  # the path by which it, or a copy of it, was mapped
    sha256: str | None  # of its bytes when it was checked, if known
    stub: str  # the path of the stub, which was mapped before all that came with the file
    wanted: tuple[str, ...]  # names of the libraries that it and its companions need
    by_name: OpenedByName  # what its code may open by name


class BoundFiles:
    """All that this process has mapped by `binding`. [any thread]"""

    def __init__(self) -> None:
        # The mapped files by `file_key`, and copies by the hashes of the originals.
        self.files: dict[tuple[int, ...] | tuple[str, ...], Bound] = {}
        self.own_paths: set[str] = set()  # of all libraries, stubs included
        self.guarded: set[str] = set()  # files bound to all that their known defects ask for
        self.late: dict[str, set[MappedObject]] = {}  # by stubs; see `late_libraries`
        self.mirrors = Mirrors()

    def of(self, library: Library) -> Bound:
        """Return the mapped file that a library of `binding` is of."""
        found = list(self.files.values())  # a copy: other threads add to it
        return next(one for one in found if one.library.handle == library.handle)

    def arrived_since(self, stub: str) -> list[MappedObject]:
        """Return the libraries that were mapped after a stub and are not of `binding`."""
        from modular_tf.native.library import mapped_since  # noqa: PLC0415  (a list maps nothing)

        shown = self.mirrors.shown_file
        own = self.own_paths
        return [it for it in mapped_since(stub) if it.path not in own and shown(it.path) is None]


bound_files = BoundFiles()
atexit.register(bound_files.mirrors.remove)


def is_bound(path: str, sha256: str | None) -> bool:
    """Return whether this file was mapped before, with these bytes if known. [any thread]

    A file that replaced it was not.
    """
    files = bound_files.files
    try:
        known = files.get(file_key(FileIdentity.of(os.stat(path)))) if files else None
    except OSError:
        return False
    return known is not None and (None in (known.sha256, sha256) or known.sha256 == sha256)


def file_key(identity: FileIdentity) -> tuple[int, int, int, int]:
    """Return the part of a file's identity that a change of owner or mode leaves unchanged."""
    return identity.device, identity.inode, identity.size, identity.mtime_ns
