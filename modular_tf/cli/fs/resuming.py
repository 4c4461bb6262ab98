"""Downloads that go on where they were broken off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.stream import CHUNK
from modular_tf.errors import AbortedError, DataLossError, FailedPreconditionError, ModularTFError
from modular_tf.filesystem.scheme import is_of_this_machine

if TYPE_CHECKING:
    from modular_tf.filesystem.copy_watch import CopyWatch
    from modular_tf.filesystem.files import WritableFile
    from modular_tf.filesystem.statistics import FileStatistics

PART = ".mtf-part"
"""What the name of an unfinished download ends with, beside its target."""

RECORD = f"{PART}.json"
"""What the name of its record ends with: of which source it is part, and what that was then."""


class Resumption:
    """Copies files by way of a partial file beside the target, which an interrupt leaves there.

    [any thread]
    """

    @staticmethod
    def serves(source: Place, target: Place) -> bool:
        """Return whether a copy is a download: from elsewhere to this machine."""
        here = is_of_this_machine(target.filesystem.scheme)
        return here and not is_of_this_machine(source.filesystem.scheme)

    @staticmethod
    def copy(source: Place, target: Place, watch: CopyWatch) -> None:
        """Copy a file, beginning with what is there of it if the source is what it was.

        Raises:
            AbortedError: The source changed meanwhile; the target stays as it was.
            DataLossError: The source ended early; what came is kept for the next try.
            FailedPreconditionError: The source is a directory.
        """
        facts = source.stat()
        if facts.is_directory:
            raise FailedPreconditionError("is a directory", path=source.uri)
        part, record = _beside(target, PART), _beside(target, RECORD)
        begun = _begun(part, record, source, facts)
        if not begun:
            _write(part, b"")
            _write(record, json.dumps(_identity(source, facts)).encode())
        watch.begun(facts.length)
        watch.advance(begun)
        with target.filesystem.new_appendable_file(part.uri) as writer:
            _append_rest(source, writer, begun, facts.length, watch)
        if source.stat() != facts:  # the next try sees that as well, and begins anew
            raise AbortedError(f"read {source.uri!r}: it changed while it was read; try again")
        watch.storing()
        target.filesystem.rename_file(part.uri, target.uri)
        target.filesystem.delete_file(record.uri)


def _beside(target: Place, ending: str) -> Place:
    return Place(target.filesystem, target.uri + ending)


def _identity(source: Place, facts: FileStatistics) -> dict[str, object]:
    return {"source": source.uri, "length": facts.length, "mtime_ns": facts.mtime_nsec}


def _begun(part: Place, record: Place, source: Place, facts: FileStatistics) -> int:
    """Return how many bytes of the source are there; 0 if it may have changed since."""
    try:
        there = part.stat().length
        known = json.loads(record.filesystem.read_file(record.uri))
    except (ModularTFError, ValueError):
        return 0
    # A source without a time may have changed unnoticed.
    is_same = known == _identity(source, facts) and facts.mtime_nsec > 0
    return there if is_same and there <= facts.length else 0


def _write(place: Place, content: bytes) -> None:
    with place.filesystem.new_writable_file(place.uri) as writer:
        writer.append(content)


def _append_rest(
    source: Place, writer: WritableFile, begun: int, length: int, watch: CopyWatch
) -> None:
    buffer = memoryview(bytearray(max(1, min(CHUNK, length - begun))))
    with source.filesystem.new_random_access_file(source.uri) as reader:
        while begun < length:
            count = reader.readinto(begun, buffer[: length - begun])
            if not count:
                raise DataLossError(
                    f"read {source.uri!r}: it ended after {begun} of {length} bytes; try again",
                    path=source.uri,
                    operation="read",
                )
            writer.append(buffer[:count])
            begun += count
            watch.advance(count)
