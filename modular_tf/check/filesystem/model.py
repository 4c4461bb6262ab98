"""What a filesystem must answer, as a tree in memory: the reference of random sequences.

Paths are relative to one root, with single slashes: `a/b`; the root itself is "". The rules of the
checks are the specification. Where two things are wrong with one call, the code of either fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from modular_tf.abi.status_codes import Code
from modular_tf.check.filesystem.glob_model import level_matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Directory = dict[str, "Node"]
Node = Union[Directory, bytes]  # noqa: UP007  (evaluated at run time, in Python 3.10 too)

Codes = frozenset[Code]

OK: Codes = frozenset({Code.OK})
ANY: Codes = frozenset(Code)
_REFUSED: Codes = frozenset({Code.FAILED_PRECONDITION})
_MISSING: Codes = frozenset({Code.NOT_FOUND})
_EXISTS: Codes = frozenset({Code.ALREADY_EXISTS})
_NONE: Codes = frozenset()


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Expected:
    """What one operation must answer.

    Attributes:
        codes: The codes that fit.
        value: What it must answer beside OK, None where nothing is demanded.
        effect: Changes the model as OK means; every other code means no change.
    """

    codes: Codes
    value: Any = None
    effect: Callable[[], None] = _nothing

    def settle(self, code: int) -> None:
        """Change the model as this answer says."""
        if code == Code.OK:
            self.effect()


@dataclass(frozen=True, slots=True)
class ModelStat:
    """What `stat` must say; the length of a directory is nobody's concern."""

    length: int | None
    is_directory: bool


class FilesystemModel:
    """A tree of directories and files. [one thread]

    Each operation says what a filesystem must answer, and changes nothing: `Expected.settle`
    does, once the answer is known. Files that somebody writes to are as they were at the last
    `append`; what others see of them before they are closed is not specified.

    Attributes:
        root: The names in the root, each with its directory or content.
    """

    def __init__(self) -> None:
        self.root: Directory = {}

    # -- what is there --------------------------------------------------------------------------

    def paths(self) -> Iterator[str]:
        """Yield the path of everything below the root, parents first."""
        waiting = [("", self.root)]
        while waiting:
            prefix, directory = waiting.pop()
            for name, node in directory.items():
                yield prefix + name
                if isinstance(node, dict):
                    waiting.append((f"{prefix}{name}/", node))

    def find(self, path: str) -> Node | Code:
        """Return what is at a path, or the code that says why nothing is."""
        node: Node = self.root
        for name in filter(None, path.split("/")):
            if isinstance(node, bytes):
                return Code.FAILED_PRECONDITION
            if name not in node:
                return Code.NOT_FOUND
            node = node[name]
        return node

    def _not_there(self, path: str) -> Codes:
        found = self.find(path)
        return frozenset({found}) if isinstance(found, Code) else _NONE

    def _no_file(self, path: str) -> Codes:
        """Return why a path is no file; no code where it is one."""
        return _REFUSED if isinstance(self.find(path), dict) else self._not_there(path)

    def _no_parent(self, path: str) -> Codes:
        """Return why nothing can be made at a path."""
        parent = path.rpartition("/")[0]
        return _REFUSED if isinstance(self.find(parent), bytes) else self._not_there(parent)

    def _no_place_for_file(self, path: str) -> Codes:
        return _REFUSED if isinstance(self.find(path), dict) else self._no_parent(path)

    def _content(self, path: str) -> bytes:
        found = self.find(path)
        if isinstance(found, bytes):
            return found
        raise LookupError(f"no file {path!r}")

    def _directory(self, path: str) -> Directory:
        found = self.find(path)
        if isinstance(found, dict):
            return found
        raise LookupError(f"no directory {path!r}")

    def _put(self, path: str, node: Node) -> None:
        parent, _, name = path.rpartition("/")
        self._directory(parent)[name] = node

    def _remove(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        del self._directory(parent)[name]

    # -- files: FS-150 to FS-205 ------------------------------------------------------------------

    def new_random_access_file(self, path: str) -> Expected:
        """FS-150 to FS-154."""
        return Expected(self._no_file(path) or OK)

    def read(self, path: str, offset: int, n: int) -> Expected:
        """FS-156 to FS-161; the value is what came."""
        came = self._content(path)[offset : offset + n]
        if n == 0:
            return Expected(frozenset({Code.OK, Code.OUT_OF_RANGE}), came)
        return Expected(OK if len(came) == n else frozenset({Code.OUT_OF_RANGE}), came)

    def new_writable_file(self, path: str) -> Expected:
        """FS-170 to FS-175: what was there is emptied."""
        codes = self._no_place_for_file(path)
        return Expected(codes) if codes else Expected(OK, None, lambda: self._put(path, b""))

    def new_appendable_file(self, path: str) -> Expected:
        """FS-192 to FS-198: what was there is kept."""
        codes = self._no_place_for_file(path)
        if codes or isinstance(self.find(path), bytes):
            return Expected(codes or OK)
        return Expected(OK, None, lambda: self._put(path, b""))

    def append(self, path: str, data: bytes) -> Expected:
        """FS-176 to FS-178, to an open file."""
        whole = self._content(path) + data
        return Expected(OK, None, lambda: self._put(path, whole))

    def new_read_only_memory_region_from_file(self, path: str) -> Expected:
        """FS-199 to FS-202; the value is the content."""
        codes = self._no_file(path)
        if codes:
            return Expected(codes)
        content = self._content(path)
        return Expected(OK if content else frozenset({Code.INVALID_ARGUMENT}), content or None)

    # -- directories and deletion: FS-206 to FS-233 -----------------------------------------------

    def create_dir(self, path: str) -> Expected:
        """FS-206 to FS-211."""
        if not isinstance(self.find(path), Code):
            return Expected(_EXISTS)
        codes = self._no_parent(path)
        return Expected(codes) if codes else Expected(OK, None, lambda: self._put(path, {}))

    def recursively_create_dir(self, path: str) -> Expected:
        """FS-212 to FS-217."""
        found = self.find(path)
        if isinstance(found, bytes) or found is Code.FAILED_PRECONDITION:
            return Expected(_REFUSED)
        return Expected(OK, None, lambda: self._make_all(path))

    def _make_all(self, path: str) -> None:
        made = ""
        for name in filter(None, path.split("/")):
            self._directory(made).setdefault(name, {})
            made = f"{made}/{name}"

    def delete_file(self, path: str) -> Expected:
        """FS-220 to FS-223."""
        codes = self._no_file(path)
        return Expected(codes) if codes else Expected(OK, None, lambda: self._remove(path))

    def delete_dir(self, path: str) -> Expected:
        """FS-224 to FS-227."""
        found = self.find(path)
        if isinstance(found, Code):
            return Expected(frozenset({found}))
        if isinstance(found, bytes) or found:
            return Expected(_REFUSED)
        return Expected(OK, None, lambda: self._remove(path))

    def delete_recursively(self, path: str) -> Expected:
        """FS-228 to FS-233; the value is how many files and directories are left."""
        codes = self._not_there(path)
        return Expected(codes) if codes else Expected(OK, (0, 0), lambda: self._remove(path))

    # -- rename and copy: FS-235 to FS-255 --------------------------------------------------------

    def rename_file(self, source: str, target: str) -> Expected:
        """FS-235 to FS-242; onto a directory, a default may move into it."""
        codes = self._no_file(source) | self._no_place_for_file(target)
        if source == target and not codes:
            return Expected(ANY)
        if codes == _REFUSED and not self._no_file(source):
            return self._into_directory(source, target, moves=True)
        return Expected(codes) if codes else Expected(OK, None, lambda: self._move(source, target))

    def copy_file(self, source: str, target: str) -> Expected:
        """FS-244 to FS-252; a directory is refused as the target, or copied into."""
        codes = self._no_file(source) | self._no_place_for_file(target)
        if source == target and not codes:
            return Expected(ANY)
        if codes == _REFUSED and not self._no_file(source):
            return self._into_directory(source, target, moves=False)
        return Expected(codes) if codes else Expected(OK, None, lambda: self._copy(source, target))

    def _into_directory(self, source: str, target: str, *, moves: bool) -> Expected:
        inside = f"{target}/{source.rpartition('/')[2]}".lstrip("/")
        if not isinstance(self.find(target), dict) or isinstance(self.find(inside), dict):
            return Expected(_REFUSED)
        act = self._move if moves else self._copy
        return Expected(OK | _REFUSED, None, lambda: act(source, inside))

    def _move(self, source: str, target: str) -> None:
        content = self._content(source)
        self._remove(source)
        self._put(target, content)

    def _copy(self, source: str, target: str) -> None:
        self._put(target, self._content(source))

    # -- questions: FS-256 to FS-298 --------------------------------------------------------------

    def path_exists(self, path: str) -> Expected:
        """FS-256 to FS-259."""
        return Expected(self._not_there(path) or OK)

    def paths_exist(self, paths: Sequence[str]) -> Expected:
        """FS-260 to FS-265; the value is a code per path."""
        singly = [self.find(path) for path in paths]
        return Expected(OK, [found if isinstance(found, Code) else Code.OK for found in singly])

    def stat(self, path: str) -> Expected:
        """FS-266 to FS-270; the value is a `ModelStat`."""
        found = self.find(path)
        if isinstance(found, Code):
            return Expected(frozenset({found}))
        if isinstance(found, dict):
            return Expected(OK, ModelStat(None, is_directory=True))
        return Expected(OK, ModelStat(len(found), is_directory=False))

    def is_directory(self, path: str) -> Expected:
        """FS-271 to FS-274; a file is FAILED_PRECONDITION, or OK and false."""
        found = self.find(path)
        if isinstance(found, Code):
            return Expected(frozenset({found}))
        if isinstance(found, dict):
            return Expected(OK, value=True)
        return Expected(OK | _REFUSED, value=False)

    def get_file_size(self, path: str) -> Expected:
        """FS-275 to FS-278."""
        codes = self._no_file(path)
        return Expected(codes) if codes else Expected(OK, len(self._content(path)))

    def get_children(self, path: str) -> Expected:
        """FS-279 to FS-290; the value is sorted."""
        found = self.find(path)
        if isinstance(found, dict):
            return Expected(OK, sorted(found))
        return Expected(self._not_there(path) or _REFUSED)

    def get_matching_paths(self, pattern: str) -> Expected:
        """FS-293 to FS-298; the value is sorted."""
        found: list[tuple[str, Node]] = [("", self.root)] if pattern else []
        for level in pattern.split("/"):
            found = [child for parent in found for child in _matching_children(*parent, level)]
        return Expected(OK, sorted(path.lstrip("/") for path, _ in found))


def _matching_children(path: str, node: Node, level: str) -> Iterator[tuple[str, Node]]:
    if isinstance(node, dict):
        for name, child in node.items():
            if level_matches(level, name):
                yield f"{path}/{name}", child
