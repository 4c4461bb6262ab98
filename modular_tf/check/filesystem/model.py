"""What a filesystem must answer, as a tree in memory, and random sequences that are held to it.

Paths are relative to one root, with single slashes: `a/b`; the root itself is "". The rules of the
checks are the specification. Where two things are wrong with one call, the code of either fits.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Union

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Unsupported, expect_equal
from modular_tf.check.filesystem.operations import MOVES, OPENED, OPERATIONS, Stat
from modular_tf.check.sequences import Data, ListOf, Numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace
    from modular_tf.check.sequences import Program, StepKind

Directory = dict[str, "Node"]
Node = Union[Directory, bytes]  # noqa: UP007  (evaluated at run time, in Python 3.10 too)

Codes = frozenset[Code]

OK: Codes = frozenset({Code.OK})
ANY: Codes = frozenset(Code)
_REFUSED: Codes = frozenset({Code.FAILED_PRECONDITION})
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


def _unless(codes: Codes, effect: Callable[[], None], value: Any = None) -> Expected:
    """Return that an operation is refused by one of some codes, or where there are none works."""
    return Expected(codes) if codes else Expected(OK, value, effect)


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
        return _unless(self._no_place_for_file(path), lambda: self._put(path, b""))

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
        return _unless(self._no_parent(path), lambda: self._put(path, {}))

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
        return _unless(self._no_file(path), lambda: self._remove(path))

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
        return _unless(self._not_there(path), lambda: self._remove(path), (0, 0))

    # -- rename and copy: FS-235 to FS-255 --------------------------------------------------------

    def rename_file(self, source: str, target: str) -> Expected:
        """FS-235 to FS-242; onto a directory, a default may move into it."""
        return self._transferred(source, target, self._move)

    def copy_file(self, source: str, target: str) -> Expected:
        """FS-244 to FS-252; a directory is refused as the target, or copied into."""
        return self._transferred(source, target, self._copy)

    def _transferred(
        self, source: str, target: str, transfer: Callable[[str, str], None]
    ) -> Expected:
        codes = self._no_file(source) | self._no_place_for_file(target)
        if source == target and not codes:
            return Expected(ANY)
        if codes != _REFUSED or self._no_file(source):
            return _unless(codes, lambda: transfer(source, target))
        inside = f"{target}/{source.rpartition('/')[2]}".lstrip("/")
        if not isinstance(self.find(target), dict) or isinstance(self.find(inside), dict):
            return Expected(_REFUSED)
        return Expected(OK | _REFUSED, None, lambda: transfer(source, inside))

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


def level_matches(pattern: str, name: str) -> bool:
    r"""Return whether a whole name matches one level of a pattern, by the header's grammar.

    It shares nothing with the host's own matcher, which it is to judge.

    `*` any letters, `?` one letter, `[abc]`, `[a-c]`, `[^abc]` one of a set or none of it, `\` the
    letter behind it. A `[` that nothing ends matches nothing.

    Args:
        pattern: Without slashes.
        name: Likewise.
    """
    if not pattern:
        return not name
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(level_matches(rest, name[skipped:]) for skipped in range(len(name) + 1))
    if not name:
        return False
    if head == "[":
        members, end, rest = _cut_set(rest)
        fits = bool(end) and _set_holds(members, name[0])
    elif head == "\\" and rest:
        fits, rest = rest[0] == name[0], rest[1:]
    else:
        fits = head in {"?", name[0]}
    return fits and level_matches(rest, name[1:])


def _cut_set(text: str) -> tuple[str, str, str]:
    """Return a set's members, its `]` ("" where none ends it), and what follows."""
    # The first letter belongs to the set even if it is a bracket.
    first = 2 if text[:1] in {"^", "!"} else 1
    members, end, rest = text[first:].partition("]")
    return text[:first] + members, end, rest


def _set_holds(members: str, letter: str) -> bool:
    negated = members[:1] in {"^", "!"}
    waiting = members[1:] if negated else members
    held = False
    while waiting:
        if waiting[1:2] == "-" and len(waiting) > 2:  # noqa: PLR2004  (a, -, z)
            held |= waiting[0] <= letter <= waiting[2]
            waiting = waiting[3:]
        else:
            held |= waiting[0] == letter
            waiting = waiting[1:]
    return held != negated


ON_ONE_PATH = tuple(
    name
    for name, op in OPERATIONS.items()
    if op.inputs in {("path",), ("pattern",)} and not {*OPENED, "&token"} & {*op.words}
)
"""The operations of the model on one path that open nothing."""


class ModelWalk:
    """Does operations to a filesystem and to its model. [one thread]

    Paths are the model's: relative to the workspace's root. Every method raises `Deviation` where
    the two differ, and `Unsupported` where the filesystem does not offer the operation.

    Args:
        fs: Empty.

    Attributes:
        model: What must be there.
    """

    def __init__(self, fs: FilesystemWorkspace) -> None:
        self.model = FilesystemModel()
        self._fs = fs

    def uri(self, path: str) -> str:
        """Return the URI of one of the model's paths."""
        return self._fs.path(path) if path else self._fs.root

    def do(self, operation: str, *paths: str) -> Answer:
        """Do an operation on one path, or on two."""
        answer = self._fs.call(operation, *map(self.uri, paths))
        expected: Expected = getattr(self.model, operation)(*paths)
        return self._settle(f"{operation}({', '.join(map(repr, paths))})", answer, expected)

    def paths_exist(self, paths: Sequence[str]) -> Answer:
        """Ask for several paths at once."""
        answer = self._fs.paths_exist([self.uri(path) for path in paths])
        return self._settle(f"paths_exist({paths!r})", answer, self.model.paths_exist(paths))

    def write(self, path: str, pieces: Sequence[bytes], *, append: bool = False) -> None:
        """Open a file for writing, append pieces, close it."""
        slot = "new_appendable_file" if append else "new_writable_file"
        opened = self.do(slot, path)
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
        opened = self.do("new_random_access_file", path)
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
        opened = self.do("new_read_only_memory_region_from_file", path)
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
        in_front = f"{self._fs.root}/"
        found = [v.removeprefix(in_front) if isinstance(v, str) else v for v in values]
        return sorted(found, key=str) if any(isinstance(v, str) for v in found) else found


# -- steps as data ---------------------------------------------------------------------------------

_PATHS = ("a", "b", "d", "d/a", "d/b", "d/e", "é*")
"""Few, so that operations meet."""

_RARE_PATHS = ("ab", "d/e/a b", "d/e/f/g", "a/b")
"""The beginning of another name, a blank, a deep one, a file's child."""

_PATTERNS = ("*", "a*", "?", "[^a]", "*/b", "a/*/b", r"a\*", "[a-b]*", "*/*")
_ASCII = 128

_PATH = (*_PATHS, *_PATHS, *_RARE_PATHS)
_PIECES = ListOf(Data(0, 300), 4)
_NUMBER = Numbers(0, 700)

STEPS: Sequence[StepKind] = (
    (("write", "append"), (_PATH, _PIECES)),
    (("create_dir", "recursively_create_dir"), (_PATH,)),
    (("read",), (_PATH, _NUMBER, _NUMBER)),
    (tuple(name for name in ON_ONE_PATH if name != "get_matching_paths"), (_PATH,)),
    (("map",), (_PATH,)),
    (("get_matching_paths",), (_PATTERNS,)),
    (MOVES, (_PATH, _PATH)),
    (("paths_exist",), (ListOf(_PATH, 4),)),
)
"""What a step may be."""


def script(program: Program) -> list[str]:
    """Return a program as C-like statements, one a step; names are relative to the root."""
    return [_statement(operation, arguments) for operation, arguments in program]


def _statement(operation: str, arguments: list[Any]) -> str:
    if operation in {"write", "append"}:
        path, pieces = arguments
        opens = "new_appendable_file" if operation == "append" else "new_writable_file"
        appends = "".join(f"append(f, {_text(bytes.fromhex(piece))}); " for piece in pieces)
        return f"f = {opens}({_text(path)}); {appends}close(f);"
    if operation == "read":
        path, offset, n = arguments
        return f"read(new_random_access_file({_text(path)}), {offset}, {n});"
    if operation == "map":
        return f"new_read_only_memory_region_from_file({_text(arguments[0])});"
    if operation == "paths_exist":
        return f"paths_exist({{{', '.join(map(_text, arguments[0]))}}});"
    return f"{operation}({', '.join(map(_text, arguments))});"


def _text(value: str | bytes) -> str:
    """Return a C string; bytes come with their number behind it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    escaped = "".join(
        chr(byte) if chr(byte).isalnum() and byte < _ASCII else f"\\{byte:03o}" for byte in value
    )
    return f'"{escaped}", {len(value)}'


def perform(fs: FilesystemWorkspace, program: Program) -> None:
    """Do a program to a filesystem and to its model, then compare all that there is."""
    walk = ModelWalk(fs)
    for operation, arguments in program:
        with suppress(Unsupported):
            if operation in {"write", "append"}:
                path, pieces = arguments
                walk.write(path, [*map(bytes.fromhex, pieces)], append=operation == "append")
            elif operation in ON_ONE_PATH or operation in MOVES:
                walk.do(operation, *arguments)
            elif operation in {"read", "map", "paths_exist"}:
                getattr(walk, operation)(*arguments)
            else:
                raise ValueError(f"no operation {operation!r}")
    for path in ("", *walk.model.paths()):
        found = walk.model.find(path)
        with suppress(Unsupported):
            if isinstance(found, bytes):
                walk.read(path, 0, len(found) + 1)
            else:
                walk.do("get_children", path)
