"""Where a check of a filesystem works: a directory of its own, and the usual things in it.

The letters of checks: F a closed file `abcd`, E an empty file, D an empty directory, N a
directory with a file, X a missing name, F/x a name below a file, X/y one in a missing directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.expectation import Blocked, Unsupported

if TYPE_CHECKING:
    import random

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.access import Operations, Reader
    from modular_tf.check.target import Target

CONTENT = b"abcd"


class FilesystemGround:
    """What a check of a filesystem is given.

    Attributes:
        subject: The filesystem.
        root: The URI of an empty directory of this check alone, without a trailing slash.
        target: What is checked, and how it is reached.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(
        self, subject: Operations, root: str, target: Target, random: random.Random
    ) -> None:
        self.subject = subject
        self.root = root
        self.target = target
        self.random = random

    def path(self, name: str) -> str:
        """Return the URI of a name below the root; nothing is made."""
        return f"{self.root}/{name}"

    def make_file(self, name: str = "F", content: bytes = CONTENT) -> str:
        """Make a closed file with this content and return its URI."""
        uri = self.path(name)
        answer = self.subject.new_writable_file(uri)
        _made(answer, "new_writable_file", "FS-170")
        writer = answer.value
        if writer is None:
            raise Blocked("new_writable_file said OK and left no file")
        try:
            if content:
                _made(writer.append(content), "append", "FS-176")
            _made(writer.close(), "close", "FS-170")
        finally:
            writer.cleanup()
        return uri

    def make_empty_file(self, name: str = "E") -> str:
        """Make an empty file, of which some stores keep nothing, and return its URI."""
        uri = self.make_file(name, b"")
        if self.subject.offers("path_exists") and not self.exists(uri):
            raise Blocked("nothing is left of an empty file once it is closed")
        return uri

    def make_dir(self, name: str = "D") -> str:
        """Make an empty directory and return its URI."""
        uri = self.path(name)
        _made(self.subject.create_dir(uri), "create_dir", "FS-206")
        return uri

    def make_full_dir(self, name: str = "N") -> str:
        """Make a directory that holds one file, `file`, and return its URI."""
        uri = self.make_dir(name)
        self.make_file(f"{name}/file")
        return uri

    def missing(self) -> str:
        """X: a URI where nothing is."""
        return self.path("X")

    def below_missing(self) -> str:
        """X/y: a URI in a directory that is not there."""
        return self.path("X/y")

    def below_file(self) -> str:
        """F/x: a URI below a file, which is made."""
        return f"{self.make_file()}/x"

    def content(self, uri: str) -> bytes:
        """Return a file's content, read in one go and once more behind it."""
        answer = self.subject.new_random_access_file(uri)
        _made(answer, "new_random_access_file", "FS-150")
        reader = answer.value
        if reader is None:
            raise Blocked("new_random_access_file said OK and left no file")
        try:
            return _read_all(reader)
        finally:
            reader.close()

    def exists(self, uri: str) -> bool:
        """Return whether there is something."""
        answer = self.subject.path_exists(uri)
        if answer.code == Code.NOT_FOUND:
            return False
        _made(answer, "path_exists", "FS-256")
        return True


_AT_ONCE = 1 << 20


def _read_all(reader: Reader) -> bytes:
    pieces: list[bytes] = []
    offset = 0
    while True:
        answer = reader.read(offset, _AT_ONCE)
        if answer.code not in {Code.OK, Code.OUT_OF_RANGE}:
            _made(answer, "read", "FS-156")
        pieces.append(answer.value)
        offset += len(answer.value)
        if len(answer.value) < _AT_ONCE:
            return b"".join(pieces)


def _made(answer: Answer, what: str, see: str) -> None:
    """Go on where a step of the preparation worked, which another check is about.

    Args:
        answer: Of the step.
        what: The operation, without the name that it was called for: see `Blocked`.
        see: The check that is about it.
    """
    if answer.code == Code.UNIMPLEMENTED:
        raise Unsupported(f"{what} is UNIMPLEMENTED")
    if not answer.ok:
        raise Blocked(f"{what} failed: see {see}", found=code_found(answer))
