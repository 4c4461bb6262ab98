"""Checking a store that cannot be written to, on files that its owner has put there.

Their folder is the root of the run, with this in it:

```
F         the four bytes abcd
E         nothing
N/file    abcd
a/c       abcd
G         0123456789, ten times
nine      the nine bytes "nine byte"
long      `large_bytes` random bytes (an option; 5 MiB by default), always the same
```
"""

from __future__ import annotations

import errno
import os
import random
from typing import TYPE_CHECKING, Any, cast

from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.ground import CONTENT, FilesystemGround
from modular_tf.service.output_file import write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from typing_extensions import Self

    from modular_tf.check.filesystem.subject import FilesystemSubject
    from modular_tf.check.options import Options
    from modular_tf.check.target import Target

_LARGE = 5 << 20  # longer than the blocks that plugins fetch ahead
_FILES: Mapping[str, bytes] = {
    "F": CONTENT,
    "E": b"",
    "N/file": CONTENT,
    "a/c": CONTENT,
    "G": b"0123456789" * 10,
    "nine": b"nine byte",
}
_LONG = "long"
_WITHHELD = frozenset(
    {
        "new_writable_file", "new_appendable_file", "create_dir", "recursively_create_dir",
        "delete_file", "delete_dir", "delete_recursively", "rename_file", "copy_file",
        "start_transaction", "set_filesystem_configuration", "set_filesystem_configuration_option",
        "get_matching_paths",  # which sees more than a check has made
    }
)  # fmt: skip


def long_content(options: Options) -> bytes:
    """Return the bytes of a file that plugins need several requests for.

    Args:
        options: Of the run; `large_bytes` is how many there are.
    """
    length = options.large_bytes or _LARGE
    return random.Random(_LONG).randbytes(length)  # noqa: S311  (the same for whoever reads it)


def write_prepared_files(folder: str, options: Options) -> None:
    """Write the files into a folder, for a server to serve them.

    Args:
        folder: It is made where it is missing.
        options: See `long_content`.

    Raises:
        OSError: A file cannot be written, or something else stands in its place.
    """
    os.makedirs(folder, exist_ok=True)
    for name, content in {**_FILES, _LONG: long_content(options)}.items():
        path = os.path.join(folder, name)
        if os.path.islink(os.path.dirname(path)) and os.path.dirname(name):
            raise OSError(errno.ENOTDIR, "is a symbolic link", os.path.dirname(path))
        write_output(path, content)


class ReadingSubject:
    """A filesystem without operations that change something: they are `Unsupported`.

    Args:
        subject: Answers everything else.
    """

    def __init__(self, subject: FilesystemSubject) -> None:
        self._subject = subject

    def offers(self, slot: str) -> bool:
        """Return whether an operation can be called here."""
        return slot not in _WITHHELD and self._subject.offers(slot)

    def another(self) -> ReadingSubject:
        """Return another filesystem of the plugin, which changes nothing either."""
        return ReadingSubject(cast("Any", self._subject).another())

    def __getattr__(self, name: str) -> Any:
        return _refuses(name) if name in _WITHHELD else getattr(self._subject, name)


def _refuses(slot: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise Unsupported(f"among files that are not the check's own, {slot} is not tried")

    return refuse


class PreparedGround(FilesystemGround):
    """A ground whose files have been there before; those with the same bytes are the same file.

    `subject` changes nothing, and what a check would have to make is `Unsupported`.
    """

    @classmethod
    def of(cls, subject: FilesystemSubject, target: Target, chance: random.Random) -> Self:
        """Return the ground of a run whose root holds the files."""
        reading = cast("FilesystemSubject", ReadingSubject(subject))
        return cls(reading, (target.root or "").rstrip("/"), target, chance)

    def make_file(self, name: str = "F", content: bytes = CONTENT) -> str:
        """Return the URI of a file with this content.

        Raises:
            Unsupported: None was prepared.
        """
        if _FILES.get(name) == content:
            return self.path(name)
        for prepared, found in _FILES.items():
            if found == content:
                return self.path(prepared)
        if content == long_content(self.target.options):
            return self.path(_LONG)
        raise Unsupported(f"no file was prepared that has the content of {name}")

    def make_dir(self, name: str = "D") -> str:
        """Raise `Unsupported`: servers of files have no empty directories."""
        raise Unsupported(f"no empty directory {name} can be prepared")

    def make_full_dir(self, name: str = "N") -> str:
        """Return the URI of the directory with one file in it.

        Raises:
            Unsupported: The check needs it by another name, or the store knows files alone.
        """
        uri = self.path(name)
        if name != "N":
            raise Unsupported(f"no directory {name} was prepared")
        if not self.subject.path_exists(uri).ok:
            raise Unsupported(f"the store has no directory {uri}, though there is a file in it")
        return uri
