"""Random sequences of operations on a filesystem, and what performs them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.model import ON_ONE_PATH, ModelWalk
from modular_tf.check.filesystem.operations import MOVES
from modular_tf.check.sequences import Data, ListOf, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.filesystem.workspace import FilesystemWorkspace
    from modular_tf.check.sequences import Program, StepKind

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
