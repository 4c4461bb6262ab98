"""A folder of the disk with a few entries, and the filesystem of a plugin that changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE, EMPTY, OTHER, DIRECTORY, FULL = "file", "empty", "other", "dir", "full"
CONTENT, OTHER_CONTENT = b"abcd", b"0123456789"


class Disk:
    """A folder, and the filesystem by which tests change it; they look at it without the plugin.

    Attributes:
        fs: Serves the URIs.
        root: The folder.
    """

    def __init__(self, fs, root: Path, prefix: str = "") -> None:
        self.fs = fs
        self.root = root
        self._prefix = prefix
        for name in (DIRECTORY, FULL):
            (root / name).mkdir()
        for name, data in ((FILE, CONTENT), (EMPTY, b""), (OTHER, OTHER_CONTENT)):
            (root / name).write_bytes(data)
        (root / FULL / "inner").write_bytes(b"inside")

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def uri(self, name: str) -> str:
        """The URI of a name in the folder."""
        return f"{self._prefix}{self.root}/{name}"

    def call(self, operation: str, *names: str):
        """Call an operation on names in the folder."""
        return getattr(self.fs, operation)(*map(self.uri, names))

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self / name).read_bytes()

    def names(self) -> set[str]:
        """The names in the folder."""
        return {path.name for path in self.root.iterdir()}

    def tree(self) -> dict[str, bytes | None]:
        """Everything in the folder: bytes of files, None for directories."""
        return {
            str(path.relative_to(self.root)): None if path.is_dir() else path.read_bytes()
            for path in self.root.rglob("*")
        }
