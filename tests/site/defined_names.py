"""The names that a source file defines: functions, classes, constants, macros and fields.

Entries of tables count too: the texts in a module's own statements, as the names of layouts and the
ids of checks, and the fields that a C initialiser fills.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from typing import TYPE_CHECKING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_C_SUFFIXES = {".c", ".cc", ".h", ".hpp", ".cpp", ".in"}
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_C_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_C_DEFINITIONS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\s*#\s*define\s+(\w+)",
        r"\b(?:struct|class|enum|union|namespace|using)\s+(\w+)",
        r"\(\s*\*\s*(\w+)\s*\)\s*\(",  # a pointer to a function
        r"\}\s*(\w+)\s*;",  # a typedef
        r"[{,]\s*\.(\w+)\s*=",  # a field in an initialiser
        r"^\s*#\s*include\s*<([\w./]+)>",
        # A function, variable or field behind its type, which may name a class.
        (
            r"^[ \t]*(?!return\b|else\b|throw\b|delete\b|goto\b)"
            r"[A-Za-z_][\w:<>,*& \t\"\n]*?[\s*&:](\w+)(?=\s*(?:\(|;|=|\[|\{|,))"
        ),
    )
)


_C_ENUMERATION = re.compile(r"\benum\b[^{};]*\{([^}]*)\}")
_C_ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")


@cache
def defined_names(path: Path) -> frozenset[str]:
    """Return what a Python, C, C++, TOML or other file defines.

    Methods and fields of a Python class are there by their names alone, and with those of their
    classes before a dot.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".py", ".pyi"}:
        module = ast.parse(text)
        return frozenset({*_python_names(module, ()), *_entries(module)})
    if path.suffix in _C_SUFFIXES:
        return frozenset(_c_names(_C_STRING.sub('""', _C_COMMENT.sub("", text))))
    if path.suffix == ".toml":
        return frozenset(_toml_names(tomllib.loads(text)))
    return frozenset(re.findall(r"[\w.-]+", text))


def _c_names(text: str) -> Iterator[str]:
    for pattern in _C_DEFINITIONS:
        yield from pattern.findall(text)
    for enumeration in _C_ENUMERATION.findall(text):
        yield from _C_ENUMERATOR.findall(enumeration)


def _python_names(node: ast.AST, outer: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        names = list(_names_of(child))
        for name in names:
            yield name
            yield ".".join([*outer, name])
        inner = (*outer, *names) if isinstance(child, ast.ClassDef) else outer
        yield from _python_names(child, inner)


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr


def _entries(module: ast.Module) -> Iterator[str]:
    """Yield the texts in assignments and calls of a module, and in decorators of its functions."""
    for statement in module.body:
        tables: list[ast.AST] = []
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        ):
            tables = [statement]
        elif isinstance(statement, ast.FunctionDef):
            tables = [*statement.decorator_list]
        for node in (node for table in tables for node in ast.walk(table)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _toml_names(value: object) -> Iterator[str]:
    """Yield keys, and texts that may be ids."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _toml_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _toml_names(inner)
    elif isinstance(value, str):
        yield value
