"""A ground on a further filesystem of the same plugin, beside the one that a check is given."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from modular_tf.check.catalogue import all_checks
from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.ground import FilesystemGround
from modular_tf.check.filesystem.registration_memory import RegistrationMemory
from modular_tf.check.filesystem.stage_root import StageRoot
from modular_tf.errors import PluginError
from modular_tf.loading.binding import map_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.raw_subject import RawFilesystem


def raw_subject(ground: FilesystemGround) -> RawFilesystem:
    """Return the subject of a ground of the raw pass."""
    return cast("RawFilesystem", ground.subject)


def registration_of(ground: FilesystemGround) -> RegistrationMemory:
    """Call `TF_InitPlugin` once more; what it leaves is the caller's.

    Raises:
        Blocked: It fails.
    """
    target = ground.target
    raw_subject(ground).journal.enter("TF_InitPlugin(&info)")
    try:
        library = map_file(target.path, target.companions, target.absent)
        return RegistrationMemory(library)
    except PluginError as error:
        raise Blocked(f"{error.message}: see {error.rule}") from error


def initialised(ground: FilesystemGround) -> RawFilesystem:
    """Return a further filesystem, initialised.

    Raises:
        Blocked: Its `init` fails.
    """
    other = raw_subject(ground).another()
    answer = other.init()
    if not answer.ok:
        raise Blocked(f"init failed with {answer.code}: {answer.message}: see FS-019")
    return other


@contextmanager
def further_filesystem(ground: FilesystemGround) -> Iterator[RawFilesystem]:
    """Initialise a further filesystem, and clean it up in the end.

    Raises:
        Blocked: Its `init` fails.
    """
    other = initialised(ground)
    try:
        yield other
    finally:
        other.cleanup()


@contextmanager
def ground_on(
    other: RawFilesystem, ground: FilesystemGround, check_id: str
) -> Iterator[FilesystemGround]:
    """Make an empty directory on another filesystem, below the check's own.

    It is removed; the filesystem stays.

    Args:
        other: The filesystem.
        ground: Of the check.
        check_id: The check's id.

    Raises:
        Blocked: It cannot be made.
    """
    roots = StageRoot(replace(ground.target, root=ground.root))
    root = roots.make(other, all_checks()[check_id])
    try:
        yield FilesystemGround(other, root, ground.target, ground.random)
    finally:
        roots.remove(other, root)
