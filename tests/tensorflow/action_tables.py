"""The tables in the documents of what works by which way, which tests compare and can fill."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.machine import DEVELOPER_ENVIRONMENT
from tests.tensorflow.action_list import DONE

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "how-to" / "use-in-tensorflow.md"
FILL = "MODULAR_TF_FILL_TABLES"
"""The variable of the environment with which a test writes its column."""


def titles(program: str) -> dict[str, str]:
    """Return the first line of the docstring of each action of a program, by the action's name."""
    module = ast.parse((FOLDER / program).read_text(encoding="utf-8"))
    return {
        node.name: (ast.get_docstring(node) or "").split("\n")[0].removesuffix(".")
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Name) and one.id == "action" for one in node.decorator_list)
    }


def rows(program: str) -> list[list[str]]:
    """Return the cells of the table that has the actions of a program, its head first."""
    return [_cells(PAGE.read_text(encoding="utf-8").split("\n")[n]) for n in _lines_of(program)]


def head(program: str) -> list[str]:
    """Return the head of the table that has the actions of a program."""
    return rows(program)[0]


def compare(program: str, way: str, found: Mapping[str, str]) -> None:
    """Compare what came of each action with the column of a way; fill the column if asked to.

    Args:
        program: The file with the actions.
        way: The head of the column.
        found: DONE or a traceback, by the name of the action.
    """
    came = {titles(program)[name]: _cell(how) for name, how in found.items()}
    if DEVELOPER_ENVIRONMENT.get(FILL):
        _fill(program, way, came)
    head, *lines = rows(program)
    column = head.index(way)
    failures = {name: how for name, how in found.items() if how != DONE}
    assert {line[0]: line[column] for line in lines} == came, failures


def _cell(outcome: str) -> str:
    """Return "yes", the class of TensorFlow's error, or "no" for another result than expected."""
    if outcome == DONE:
        return "yes"
    error = outcome.strip().split("\n")[-1].partition(":")[0].rpartition(".")[2]
    return "no" if error == "AssertionError" else f"`{error}`"


def _lines_of(program: str) -> list[int]:
    """Return the numbers of the lines of a table, without the one below its head."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    first = next(iter(titles(program).values()))
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {first} |"))
    end = at
    while lines[end].startswith("|"):
        end += 1
    return [at - 2, *range(at, end)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _fill(program: str, way: str, came: Mapping[str, str]) -> None:
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    head, *numbers = _lines_of(program)
    column = _cells(lines[head]).index(way)
    for number in numbers:
        cells = _cells(lines[number])
        cells[column] = came[cells[0]]
        lines[number] = f"| {' | '.join(cells)} |"
    PAGE.write_text("\n".join(lines), encoding="utf-8")
