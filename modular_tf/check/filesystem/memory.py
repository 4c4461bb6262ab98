"""The check of what a plugin does to memory: every other check sees it too, where it happens."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.breach import raise_harm_at_loading
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Unsupported
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.filesystem.ground import FilesystemGround

CHECKS = CheckList("filesystem", "memory")

_ODD_LENGTHS = (1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 4095, 4096, 4097)
"""In bytes: where buffers that are one byte too short show."""


@CHECKS.check("FS-329", Level.ROBUST, passes=RAW)
def keeps_to_its_memory(ground: FilesystemGround) -> None:
    """Names and contents of lengths at which buffers are often too short; all else by the way.

    The subject itself looks at all memory after each call, and fails the check.
    """
    raise_harm_at_loading("FS-329")
    for length in _ODD_LENGTHS:
        for step in (_use_file, _ask, _list, _move, _remove):
            with suppress(Unsupported):
                step(ground, length)


def _use_file(ground: FilesystemGround, length: int) -> None:
    writer = ground.subject.new_writable_file(_name(ground, length)).value
    if writer is not None:
        for step in (lambda: writer.append(b"x" * length), writer.tell, writer.flush, writer.close):
            _attempt(step)
        writer.cleanup()
    reader = ground.subject.new_random_access_file(_name(ground, length)).value
    if reader is not None:
        for offset, n in ((0, length), (length - 1, 2), (0, 2 * length), (length, 1)):
            _attempt(partial(reader.read, offset, n))
        reader.close()


def _ask(ground: FilesystemGround, length: int) -> None:
    uri, subject = _name(ground, length), ground.subject
    for question in (subject.path_exists, subject.stat, subject.is_directory):
        _attempt(partial(question, uri))
    _attempt(lambda: subject.get_file_size(uri))
    _attempt(lambda: subject.paths_exist([uri, ground.missing()]))


def _list(ground: FilesystemGround, length: int) -> None:
    pattern = f"{_name(ground, length)[:-1]}*"
    _attempt(lambda: ground.subject.get_children(ground.root))
    _attempt(lambda: ground.subject.get_matching_paths(pattern))


def _move(ground: FilesystemGround, length: int) -> None:
    uri, subject = _name(ground, length), ground.subject
    _attempt(lambda: subject.copy_file(uri, ground.path("copy")))
    _attempt(lambda: subject.rename_file(ground.path("copy"), ground.path("moved")))


def _remove(ground: FilesystemGround, length: int) -> None:
    subject, directory = ground.subject, ground.path("directory")
    _attempt(lambda: subject.create_dir(directory))
    _attempt(lambda: subject.delete_dir(directory))
    _attempt(lambda: subject.delete_file(_name(ground, length)))


def _attempt(step: Callable[[], object]) -> None:
    with suppress(Unsupported):
        step()


def _name(ground: FilesystemGround, length: int) -> str:
    """Return a URI whose last name has so many bytes, as far as names may be long."""
    longest = 255
    return ground.path("n" * min(length, longest))
