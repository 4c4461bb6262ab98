"""Where a check of a filesystem works: a directory of its own, and the usual things in it.

The words are those of the rules: F a closed file `abcd`, E an empty file, D an empty directory, N a
directory with a file, X a missing name, F/x a name below a file, X/y one in a missing directory.
"""

from __future__ import annotations

import errno
import os
import random
from typing import TYPE_CHECKING, Any, cast

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Blocked, Deviation, Unsupported, expect, expect_equal
from modular_tf.check.filesystem.operations import CHANGES, TABLES, Operations
from modular_tf.service.output_file import write_output

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from typing_extensions import Self

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.by_slots import SlotFilesystem
    from modular_tf.check.filesystem.operations import Reader
    from modular_tf.check.filesystem.through_host import HostFilesystem
    from modular_tf.check.options import Options
    from modular_tf.check.target import Target

    Access = SlotFilesystem | HostFilesystem

CONTENT = b"abcd"
_AT_ONCE = 1 << 20
_LARGE = 5 << 20  # longer than the blocks that plugins fetch ahead
_ABOUT = {slot: op.about for table in TABLES.values() for slot, op in table.items()}


class FilesystemWorkspace(Operations):
    """What a check of a filesystem is given: its operations, and an empty directory.

    Attributes:
        access: The filesystem, by its slots or through the host.
        root: The URI of an empty directory of this check alone, without a trailing slash.
        target: What is checked, and how it is reached.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(self, access: Access, root: str, target: Target, random: Random) -> None:
        self.access = access
        self.root = root
        self.target = target
        self.random = random

    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call one of `OPERATIONS` with the inputs of its row."""
        return self.access.call(slot, *arguments)

    def has(self, slot: str) -> bool:
        """Return whether the plugin itself has a slot."""
        return self.access.has(slot)

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called here."""
        return self.access.offers(slot)

    @property
    def by_slots(self) -> SlotFilesystem:
        """The filesystem where it is reached by its slots."""
        return cast("SlotFilesystem", self.access)

    def on(self, access: Access, root: str) -> Self:
        """Return a workspace in another directory, or on another filesystem of the plugin."""
        return type(self)(access, root, self.target, self.random)

    def below(self, root: str) -> Self:
        """Return a workspace whose root is another directory, which may be missing."""
        return self.on(self.access, root)

    # -- names ------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Return the URI of a name below the root; nothing is made."""
        return f"{self.root}/{name}"

    def missing(self) -> str:
        """X: a URI where nothing is."""
        return self.path("X")

    def below_missing(self) -> str:
        """X/y: a URI in a directory that is not there."""
        return self.path("X/y")

    def below_file(self) -> str:
        """F/x: a URI below a file, which is made."""
        return f"{self.make_file()}/x"

    # -- what a check prepares: where that fails, it is `Blocked` ---------------------------------

    def make_file(self, name: str = "F", content: bytes = CONTENT) -> str:
        """Make a closed file with this content and return its URI."""
        uri = self.path(name)
        writer = _opened(self.new_writable_file(uri))
        try:
            if content:
                prepared(writer.append(content))
            prepared(writer.close())
        finally:
            writer.cleanup()
        return uri

    def make_empty_file(self, name: str = "E") -> str:
        """Make an empty file, of which some stores keep nothing, and return its URI."""
        uri = self.make_file(name, b"")
        if self.offers("path_exists") and not self.exists(uri):
            raise Blocked("nothing is left of an empty file once it is closed")
        return uri

    def make_dir(self, name: str = "D") -> str:
        """Make an empty directory and return its URI."""
        uri = self.path(name)
        prepared(self.create_dir(uri))
        return uri

    def make_full_dir(self, name: str = "N") -> str:
        """Make a directory that holds one file, `file`, and return its URI."""
        uri = self.make_dir(name)
        self.make_file(f"{name}/file")
        return uri

    def content(self, uri: str) -> bytes:
        """Return a file's content, read in one go and once more past it."""
        reader: Reader = _opened(self.new_random_access_file(uri))
        pieces: list[bytes] = []
        offset = 0
        most = 8 * max(_LARGE, self.target.options.large_bytes or 0)
        try:
            while offset <= most:
                answer = reader.read(offset, _AT_ONCE)
                if answer.code != Code.OUT_OF_RANGE:
                    prepared(answer)
                pieces.append(answer.value)
                offset += len(answer.value)
                if len(answer.value) < _AT_ONCE:
                    return b"".join(pieces)
            raise Blocked("read does not come to the end of the file", "FS-159")
        finally:
            reader.close()

    def exists(self, uri: str) -> bool:
        """Return whether there is something."""
        answer = self.path_exists(uri)
        if answer.code != Code.NOT_FOUND:
            prepared(answer)
        return answer.ok


def prepared(answer: Answer) -> Any:
    """Return the value of a step that a check prepares with; see `Answer.needed`."""
    return answer.needed(_ABOUT.get(answer.call.partition("(")[0], ""))


def _opened(answer: Answer) -> Any:
    """Return the file of an opening that is only a step of a check; see `prepared`."""
    if prepared(answer) is None:
        name = answer.call.partition("(")[0]
        raise Blocked(f"{name} said OK and left no file")
    return answer.value


# -- what is there after an operation -------------------------------------------------------------


def expect_content(fs: FilesystemWorkspace, uri: str, content: bytes, what: str) -> None:
    """Demand that a file holds exactly some bytes; `what` is that content, in words."""
    try:
        found = fs.content(uri)
    except Blocked as lost:
        raise Deviation(f"{what} cannot be read", found=f"{lost}: {lost.found}") from lost
    expect_equal(found, content, what)


def expect_empty(fs: FilesystemWorkspace, uri: str, what: str) -> None:
    """Demand that a file has no bytes, by its statistics where there are any.

    Stores that cannot read an empty file still have it.
    """
    if not fs.offers("stat"):
        expect_content(fs, uri, b"", what)
        return
    answer = fs.stat(uri)
    expect(answer.ok and answer.value is not None, f"{what} cannot be had", found=answer.message)
    expect_equal(answer.value.length, 0, what)


def expect_missing(fs: FilesystemWorkspace, uri: str, message: str) -> None:
    """Demand that nothing is there; the message says what it means that something is."""
    expect(not fs.exists(uri), message)


def expect_directory(fs: FilesystemWorkspace, uri: str, message: str) -> None:
    """Demand that a directory is there; the message says what it means that none is.

    Of a plugin without `stat`, `path_exists` is believed.
    """
    if not fs.offers("stat"):
        expect(fs.exists(uri), message)
        return
    answer = fs.stat(uri)
    expect(answer.ok and answer.value is not None and answer.value.is_directory, message)


# -- a store that cannot be written to, checked on files that its owner has put there -------------

_FILES: Mapping[str, bytes] = {
    "F": CONTENT,
    "E": b"",
    "N/file": CONTENT,
    "a/c": CONTENT,
    "G": b"0123456789" * 10,
    "nine": b"nine byte",
}
"""What the root of a run with the option `prepared` holds, besides `long`: `large_bytes` random
bytes (an option), always the same."""

_LONG = "long"
_WITHHELD = CHANGES | {"get_matching_paths"}  # which sees more than a check has made


def long_content(options: Options) -> bytes:
    """Return the bytes of a file that plugins need several requests for."""
    length = options.large_bytes or _LARGE
    return random.Random(_LONG).randbytes(length)  # noqa: S311  (the same in each run)


def write_prepared_files(folder: str, options: Options) -> None:
    """Write the files into a folder, for a server to serve them; it is made where it is missing.

    Raises `OSError` where a file cannot be written, or something else stands in its place.
    """
    os.makedirs(folder, exist_ok=True)
    for name, content in {**_FILES, _LONG: long_content(options)}.items():
        path = os.path.join(folder, name)
        if os.path.islink(os.path.dirname(path)) and os.path.dirname(name):
            raise OSError(errno.ENOTDIR, "is a symbolic link", os.path.dirname(path))
        write_output(path, content)


class PreparedWorkspace(FilesystemWorkspace):
    """A workspace whose files have been there before; those with the same bytes are the same file.

    Operations that change something are `Unsupported`, and so is what a check would have to make.
    """

    def call(self, slot: str, *arguments: Any) -> Answer:
        """Call an operation that changes nothing."""
        if slot in _WITHHELD:
            raise Unsupported(f"among files that are not the check's own, {slot} is not tried")
        return super().call(slot, *arguments)

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called here."""
        return slot not in _WITHHELD and super().offers(slot)

    def make_file(self, name: str = "F", content: bytes = CONTENT) -> str:
        """Return the URI of a file with this content."""
        if _FILES.get(name) == content:
            return self.path(name)
        for there, found in _FILES.items():
            if found == content:
                return self.path(there)
        if content == long_content(self.target.options):
            return self.path(_LONG)
        raise Unsupported(f"no file was prepared that has the content of {name}")

    def make_dir(self, name: str = "D") -> str:
        """Raise `Unsupported`: servers of files have no empty directories."""
        raise Unsupported(f"no empty directory {name} can be prepared")

    def make_full_dir(self, name: str = "N") -> str:
        """Return the URI of the directory with one file in it, which a check may need as N."""
        uri = self.path(name)
        if name != "N":
            raise Unsupported(f"no directory {name} was prepared")
        if not self.path_exists(uri).ok:
            raise Unsupported(f"the store has no directory {uri}, though there is a file in it")
        return uri
