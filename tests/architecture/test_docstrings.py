"""Docstrings say something: none is a word or two that only the code next to it explains."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.architecture.imports import PACKAGE

if TYPE_CHECKING:
    from pathlib import Path

_LEAST_WORDS = 3


def _docstrings(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [text for node in nodes if isinstance(node, kinds) and (text := ast.get_docstring(node))]


def _says_nothing(docstring: str) -> bool:
    first = docstring.splitlines()[0]
    return len(first.split()) < _LEAST_WORDS and not first.startswith("See ")


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_docstring_has_more_than_two_words(path):
    assert [text for text in _docstrings(path) if _says_nothing(text)] == []
