"""The check of what a plugin does to memory: every other check sees it too, where it happens."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.breach import raise_harm_at_loading
from modular_tf.check.check import RAW, ROBUST, Suite
from modular_tf.check.expectation import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.filesystem.ground import FilesystemGround

suite = Suite("filesystem", "memory", level=ROBUST, ways=RAW)

_ODD_LENGTHS = (1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 4095, 4096, 4097)
"""In bytes: where buffers that are one byte too short show."""


@suite.check("FS-329")
def keeps_to_its_memory(fs: FilesystemGround) -> None:
    """A plugin writes only into its own memory and what it is lent, and frees a block once.

    Otherwise: The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.
    Remedy: Run the plugin with AddressSanitizer, and look at the calls before the one that is
    named.
    Source: the C language; filesystem.h, on const arguments

    Lengths at which buffers are often too short; memory is looked at after each call.
    The subject itself looks at all memory after each call, and fails the check.
    """
    raise_harm_at_loading("FS-329")
    for length in _ODD_LENGTHS:
        for step in (_use_file, _ask, _list, _move, _remove):
            with suppress(Unsupported):
                step(fs, length)


def _use_file(fs: FilesystemGround, length: int) -> None:
    writer = fs.subject.new_writable_file(_name(fs, length)).value
    if writer is not None:
        for step in (lambda: writer.append(b"x" * length), writer.tell, writer.flush, writer.close):
            _attempt(step)
        writer.cleanup()
    reader = fs.subject.new_random_access_file(_name(fs, length)).value
    if reader is not None:
        for offset, n in ((0, length), (length - 1, 2), (0, 2 * length), (length, 1)):
            _attempt(partial(reader.read, offset, n))
        reader.close()


def _ask(fs: FilesystemGround, length: int) -> None:
    uri, subject = _name(fs, length), fs.subject
    for question in (subject.path_exists, subject.stat, subject.is_directory):
        _attempt(partial(question, uri))
    _attempt(lambda: subject.get_file_size(uri))
    _attempt(lambda: subject.paths_exist([uri, fs.missing()]))


def _list(fs: FilesystemGround, length: int) -> None:
    pattern = f"{_name(fs, length)[:-1]}*"
    _attempt(lambda: fs.subject.get_children(fs.root))
    _attempt(lambda: fs.subject.get_matching_paths(pattern))


def _move(fs: FilesystemGround, length: int) -> None:
    uri, subject = _name(fs, length), fs.subject
    _attempt(lambda: subject.copy_file(uri, fs.path("copy")))
    _attempt(lambda: subject.rename_file(fs.path("copy"), fs.path("moved")))


def _remove(fs: FilesystemGround, length: int) -> None:
    subject, directory = fs.subject, fs.path("directory")
    _attempt(lambda: subject.create_dir(directory))
    _attempt(lambda: subject.delete_dir(directory))
    _attempt(lambda: subject.delete_file(_name(fs, length)))


def _attempt(step: Callable[[], object]) -> None:
    with suppress(Unsupported):
        step()


def _name(fs: FilesystemGround, length: int) -> str:
    """Return a URI whose last name has so many bytes, as far as names may be long."""
    longest = 255
    return fs.path("n" * min(length, longest))
