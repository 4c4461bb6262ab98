"""Random sequences of operations on a filesystem, and what performs them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.access import MOVES
from modular_tf.check.filesystem.model import ON_ONE_PATH, ModelWalk

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from modular_tf.check.filesystem.workspace import FilesystemWorkspace
    from modular_tf.check.sequences.program import Program, Step

_PATHS = ("a", "b", "d", "d/a", "d/b", "d/e", "é*")
"""Few, so that operations meet."""

_RARE_PATHS = ("ab", "d/e/a b", "d/e/f/g", "a/b")
"""The beginning of another name, a blank, a deep one, a file's child."""

_PATTERNS = ("*", "a*", "?", "[^a]", "*/b", "a/*/b", r"a\*", "[a-b]*", "*/*")
_LONGEST_PIECE = 300
_MOST_PIECES = 4
_FARTHEST = 700
_ASCII = 128


def steps() -> SearchStrategy[Step]:
    """Return where steps come from."""
    from hypothesis import strategies as st  # noqa: PLC0415  (an extra, and slow to load)

    path = st.sampled_from((*_PATHS, *_PATHS, *_RARE_PATHS))
    piece = st.binary(max_size=_LONGEST_PIECE).map(bytes.hex)
    pieces = st.lists(piece, max_size=_MOST_PIECES)
    number = st.integers(0, _FARTHEST)
    others = [name for name in ON_ONE_PATH if name != "get_matching_paths"]
    makes = ("create_dir", "recursively_create_dir")
    return st.one_of(
        _step(st, st.sampled_from(["write", "append"]), path, pieces),
        _step(st, st.sampled_from(makes), path),
        _step(st, st.just("read"), path, number, number),
        _step(st, st.sampled_from(others), path),
        _step(st, st.just("map"), path),
        _step(st, st.just("get_matching_paths"), st.sampled_from(_PATTERNS)),
        _step(st, st.sampled_from(MOVES), path, path),
        _step(st, st.just("paths_exist"), st.lists(path, max_size=_MOST_PIECES)),
    )


def _step(st: Any, name: Any, *arguments: Any) -> Any:
    """Return a strategy of steps; arguments are lists, as they come back from JSON."""
    return st.tuples(name, st.tuples(*arguments).map(list))


def script(program: Program) -> list[str]:
    """Return a program as C-like statements, one a step; names are relative to the root."""
    return [_statement(operation, arguments) for operation, arguments in program.steps]


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


def perform(ground: FilesystemWorkspace, program: Program) -> None:
    """Do a program to a filesystem and to its model, then compare all that there is.

    Args:
        ground: Empty.
        program: The program; operations that the plugin does not offer are left out.

    Raises:
        Deviation: The two differ.
    """
    walk = ModelWalk(ground)
    for operation, arguments in program.steps:
        with suppress(Unsupported):
            _perform_one(walk, operation, arguments)
    _compare_all(walk)


def _perform_one(walk: ModelWalk, operation: str, arguments: list[Any]) -> None:
    if operation in {"write", "append"}:
        path, pieces = arguments
        walk.write(path, [bytes.fromhex(p) for p in pieces], append=operation == "append")
    elif operation in ON_ONE_PATH or operation in MOVES:
        walk.do(operation, *arguments)
    elif operation in {"read", "map", "paths_exist"}:
        getattr(walk, operation)(*arguments)
    else:
        raise ValueError(f"no operation {operation!r}")


def _compare_all(walk: ModelWalk) -> None:
    """Look at everything that the model says is there, and for what it does not know."""
    for path in ("", *walk.model.paths()):
        found = walk.model.find(path)
        with suppress(Unsupported):
            if isinstance(found, bytes):
                walk.read(path, 0, len(found) + 1)
            else:
                walk.do("get_children", path)
