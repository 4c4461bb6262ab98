"""The files that `binding` has mapped, once for all services of the process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.loading.origin_folder import shown_file

if TYPE_CHECKING:
    from modular_tf.loading.opened_by_name import OpenedByName
    from modular_tf.native.library import Library, MappedObject


class AdditionalLibraries(NamedTuple):
    """The libraries that were mapped together with a plugin, beside it and its companions.

    They were mapped with the plugin, or while its init functions ran.

    Attributes:
        stub: The path of the stub, which was mapped before all of them.
        objects: The libraries: what plugin and companions need, what their code opened, and what
            other threads opened at the same time.
        wanted: For plugin and companions, by their paths, the names of the libraries they need.
        single_threaded: Whether there was no other thread.
    """

    stub: str
    objects: tuple[MappedObject, ...]
    wanted: dict[str, tuple[str, ...]]
    single_threaded: bool


class Bound(NamedTuple):
    """A mapped file.

    Attributes:
        library: The library.
        mapped_as: The path by which it, or a copy of it, was mapped.
        sha256: The hash of its bytes when it was checked, None if unknown.
        additional: The libraries that were mapped with it.
        by_name: The libraries that its code may open by name.
    """

    library: Library
    mapped_as: str
    sha256: str | None
    additional: AdditionalLibraries
    by_name: OpenedByName


bound: dict[tuple[int, ...] | tuple[str, ...], Bound] = {}
"""The mapped files by `file_key`, and copies by the hashes of the originals."""


by_init: dict[str, list[AdditionalLibraries]] = {}
"""What came each time that init functions ran, by stubs: a later service judges it again."""

rejected_libraries: set[MappedObject] = set()
"""Libraries that are not trusted: they stay mapped, and the next plugin may need them too."""

own_paths: set[str] = set()
"""The paths of all libraries that `binding` has mapped, stubs included."""


def arrived_since(stub: str) -> list[MappedObject]:
    """Return the libraries that were mapped after a stub and are not of `binding`. [any thread]"""
    from modular_tf.native.library import mapped_since  # noqa: PLC0415  (a list maps nothing)

    since = mapped_since(stub)
    return [new for new in since if new.path not in own_paths and shown_file(new.path) is None]


def close_unopened(library: Library) -> None:
    """Close what the code of a library of `binding` could have opened by name and did not."""
    _bound(library).by_name.close_unopened()


def additional_libraries_of(library: Library) -> AdditionalLibraries:
    """Return the libraries that were mapped with a library of `binding`."""
    return _bound(library).additional


def _bound(library: Library) -> Bound:
    found = list(bound.values())  # a copy: other threads add to it
    return next(one for one in found if one.library.handle == library.handle)


def is_single_threaded() -> bool:
    """Return whether this process has one thread only. [any thread]

    Raises:
        OSError: The list of threads cannot be read now.
    """
    return len(os.listdir("/proc/self/task")) == 1


def is_bound(path: str) -> bool:
    """Return whether this file was mapped before; a file that replaced it was not. [any thread]"""
    try:
        return bool(bound) and file_key(FileIdentity.of(os.stat(path))) in bound
    except OSError:
        return False


def file_key(identity: FileIdentity) -> tuple[int, int, int, int]:
    """Return the part of a file's identity that a change of owner or mode leaves unchanged."""
    return identity.device, identity.inode, identity.size, identity.mtime_ns
