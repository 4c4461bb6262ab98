"""Python calls the compiled core as its headers declare it: names, and numbers of arguments."""

from __future__ import annotations

import ast
from pathlib import Path

from modular_tf.native.ffi import ffi, lib

_PACKAGE = Path(__file__).parents[2] / "modular_tf"


def _uses():
    """Return, by name, where `lib.NAME` stands and with how many arguments; None: it is no call.

    A call that unpacks a sequence is taken for no call.
    """
    found = {}
    for file in sorted(_PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        counts = {
            id(node.func): None
            if any(isinstance(argument, ast.Starred) for argument in node.args)
            else len(node.args)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"lib", "native.lib"}:
                where = f"{file.relative_to(_PACKAGE)}:{node.lineno}"
                found.setdefault(node.attr, []).append((where, counts.get(id(node))))
    return found


def test_every_use_is_declared_by_the_headers_and_has_their_arguments():
    uses = _uses()
    assert len(uses) > 150, "the search finds the uses"
    unknown = {name: places for name, places in uses.items() if not hasattr(lib, name)}
    assert unknown == {}
    wrong = []
    for name, places in uses.items():
        value = getattr(lib, name)
        if not callable(value):
            continue
        declared = ffi.typeof(value)
        for where, count in places:
            enough = count is None or count == len(declared.args)
            if not enough and not (declared.ellipsis and count > len(declared.args)):
                wrong.append(f"{where}: {name} has {count} arguments, not {len(declared.args)}")
    assert wrong == []
