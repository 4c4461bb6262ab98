"""What can be done to a store that is a local disk without its plugin: rights, limits, no room."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.by_slots import default_name
from modular_tf.check.native.write_override import without_write_override
from modular_tf.filesystem.configuration import Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

_NO_WRITING = 0o555
_OPTION_SLOTS = ("get_filesystem_configuration_option", "set_filesystem_configuration_option")
_FULL_DEVICE = "/dev/full"


def local_path(fs: FilesystemWorkspace, uri: str) -> str | None:
    """Return the local file or directory of something that was made through the plugin.

    None where the plugin's name for it is no path of the local disk, or the files are not the
    check's own.
    """
    if fs.target.options.prepared:
        return None
    translates = fs.offers("translate_name")
    name = fs.translate_name(uri).value if translates else default_name(uri)
    return name if name and os.path.isabs(name) and os.path.exists(name) else None


@contextmanager
def file_size_limit(most: int) -> Iterator[None]:
    """Let no file of this process become longer than `most` bytes; writes beyond fail (EFBIG).

    Python ignores SIGXFSZ, which would end the process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(fs: FilesystemWorkspace, directory: str) -> Iterator[None]:
    """Forbid changes in a directory within the block, to this thread and every user but root.

    A worker process that runs the plugin keeps root's rights.

    Raises:
        Unsupported: It is not on a local disk, or nothing can be forbidden here.
    """
    path = local_path(fs, directory)
    if path is None:
        raise Unsupported("rights can be taken away on a local disk only")
    before = os.stat(path).st_mode
    os.chmod(path, _NO_WRITING)
    try:
        with nullcontext() if fs.access.is_in_worker() else without_write_override():
            _expect_forbidden(path)
            yield
    finally:
        os.chmod(path, before)


def _expect_forbidden(path: str) -> None:
    """Go on where this thread really cannot write: its rights alone do not show that."""
    trial = os.path.join(path, "trial")
    try:
        os.mkdir(trial)
    except PermissionError:
        return
    os.rmdir(trial)
    raise Unsupported("permissions do not restrict this user on this disk")


ON_A_FULL_STORE = (
    "tried on a local disk, or where the plugin has an option of its own that limits the bytes of "
    "its store, for get_filesystem_configuration_option and set_filesystem_configuration_option: "
    "`capacity_bytes`, or the one that `capacity_option` below `[options]` of "
    "`modular-tf-check.toml` names"
)
"""The place of checks of full stores; see `file_without_room`."""


@contextmanager
def file_without_room(fs: FilesystemWorkspace, name: str) -> Iterator[str]:
    """Give the URI of a file that can be opened for writing, and takes no byte.

    On a local disk it is a link to a device that is always full. Elsewhere the plugin is set to
    hold one byte at most, by its own option `capacity_bytes`, or the one that the profile's option
    `capacity_option` names.

    Raises:
        Unsupported: There is no such place.
    """
    uri = fs.path(name)
    neighbour = local_path(fs, fs.make_file(f"beside-{name}"))
    if neighbour is None:
        with _one_byte_at_most(fs):
            yield uri
    elif not os.path.exists(_FULL_DEVICE):
        raise Unsupported(f"this system has no {_FULL_DEVICE}")
    else:
        os.symlink(_FULL_DEVICE, os.path.join(os.path.dirname(neighbour), name))
        yield uri


@contextmanager
def _one_byte_at_most(fs: FilesystemWorkspace) -> Iterator[None]:
    name = fs.target.options.capacity_option
    if lacking := [slot for slot in _OPTION_SLOTS if not fs.has(slot)]:
        raise Unsupported(
            f"nothing limits this store: the plugin has no {' and no '.join(lacking)}, by which "
            f"its option {name!r} (the setting capacity_option) would make it full"
        )
    answer = fs.get_filesystem_configuration_option(name)
    if not answer.ok or answer.value is None:
        raise Unsupported(
            f"nothing limits this store: it has no option {name!r} (the setting capacity_option "
            "names another)"
        )
    _set(fs, Option(name, (1,)))
    try:
        yield
    finally:
        _set(fs, answer.value)


def _set(fs: FilesystemWorkspace, option: Option) -> None:
    answer = fs.set_filesystem_configuration_option(option)
    if not answer.ok:
        raise Unsupported(f"option {option.name!r} cannot be set: {answer.message}")
