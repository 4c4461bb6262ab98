"""A filesystem and its model, step by step: each operation is done to both and compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import expect_equal
from modular_tf.check.filesystem.model import Expected, FilesystemModel, ModelStat
from modular_tf.check.filesystem.subject import Stat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround

OPERATIONS = (
    "create_dir",
    "recursively_create_dir",
    "delete_file",
    "delete_dir",
    "delete_recursively",
    "path_exists",
    "stat",
    "is_directory",
    "get_file_size",
    "get_children",
    "get_matching_paths",
)
"""Operations on one path, for `ModelWalk.on_path`."""

OPERATIONS_ON_TWO = ("rename_file", "copy_file")
"""Operations on two paths, for `ModelWalk.on_two_paths`."""


class ModelWalk:
    """Does operations to a filesystem and to its model. [one thread]

    Paths are the model's: relative to the ground's root. Every method raises `Deviation` where
    the two differ, and `Unsupported` where the filesystem does not offer the operation.

    Args:
        ground: Where the filesystem is, empty.

    Attributes:
        model: What must be there.
    """

    def __init__(self, ground: FilesystemGround) -> None:
        self.model = FilesystemModel()
        self._ground = ground
        self._subject = ground.subject

    def uri(self, path: str) -> str:
        """Return the URI of one of the model's paths."""
        return self._ground.path(path) if path else self._ground.root

    def on_path(self, operation: str, path: str) -> Answer:
        """Perform one of `OPERATIONS`."""
        answer: Answer = getattr(self._subject, operation)(self.uri(path))
        expected: Expected = getattr(self.model, operation)(path)
        return self._settle(f"{operation}({path!r})", answer, expected)

    def on_two_paths(self, operation: str, source: str, target: str) -> Answer:
        """Do one of `OPERATIONS_ON_TWO`."""
        answer: Answer = getattr(self._subject, operation)(self.uri(source), self.uri(target))
        expected: Expected = getattr(self.model, operation)(source, target)
        return self._settle(f"{operation}({source!r}, {target!r})", answer, expected)

    def paths_exist(self, paths: Sequence[str]) -> Answer:
        """Ask for several paths at once."""
        answer = self._subject.paths_exist([self.uri(path) for path in paths])
        return self._settle(f"paths_exist({paths!r})", answer, self.model.paths_exist(paths))

    def write(self, path: str, pieces: Sequence[bytes], *, append: bool = False) -> None:
        """Open a file for writing, append pieces, ask for the position, close it."""
        slot = "new_appendable_file" if append else "new_writable_file"
        opened = self.on_path(slot, path)
        if not opened.ok or opened.value is None:
            return
        writer = opened.value
        try:
            for piece in pieces:
                expected = self.model.append(path, piece)
                self._settle(f"append to {path!r}", writer.append(piece), expected)
            replace(writer.close(), call=f"close of {path!r}").must_be_ok()
        finally:
            writer.cleanup()

    def read(self, path: str, offset: int, n: int) -> None:
        """Open a file and read once."""
        opened = self.on_path("new_random_access_file", path)
        if not opened.ok or opened.value is None:
            return
        try:
            expected = self.model.read(path, offset, n)
            answer = opened.value.read(offset, n)
            expect_equal(answer.value, expected.value, f"what read({path!r}, {offset}, {n}) gave")
            replace(answer, call=f"read({path!r}, {offset}, {n})").must_be(*sorted(expected.codes))
        finally:
            opened.value.close()

    def map(self, path: str) -> None:
        """Map a file and compare its content."""
        opened = self.on_path("new_read_only_memory_region_from_file", path)
        if opened.ok and opened.value is not None:
            opened.value.close()

    def _settle(self, what: str, answer: Answer, expected: Expected) -> Answer:
        replace(answer, call=what).must_be(*sorted(expected.codes))
        if answer.ok and expected.value is not None:
            found = self._as_in_the_model(answer.value, expected.value)
            expect_equal(found, expected.value, f"what {what} returned")
        expected.settle(answer.code)
        return answer

    def _as_in_the_model(self, value: Any, like: object) -> object:
        """Bring what came into the shape that the model has for it."""
        if isinstance(like, ModelStat) and isinstance(value, Stat):
            length = None if value.is_directory else value.length
            return ModelStat(length, is_directory=value.is_directory)
        if isinstance(like, bytes):
            return value.content()
        if isinstance(like, list):
            return self._list_of_the_model(value)
        return value

    def _list_of_the_model(self, values: Sequence[object]) -> list[object]:
        """Return URIs as paths; names are sorted, codes stay in their order."""
        in_front = f"{self._ground.root}/"
        found = [v.removeprefix(in_front) if isinstance(v, str) else v for v in values]
        return sorted(found, key=str) if any(isinstance(v, str) for v in found) else found
