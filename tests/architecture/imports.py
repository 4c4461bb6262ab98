"""Who imports whom inside the package, read from its sources."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[2] / "modular_tf"
NAME = PACKAGE.name


@dataclass(frozen=True)
class Import:
    """One name of an import statement.

    Attributes:
        module: The module that it stands in.
        imported: The dotted name that is imported: a module, or a name in one.
        for_types: Whether only type checkers run it.
        line: Where it stands.
    """

    module: str
    imported: str
    for_types: bool
    line: int

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}: imports {self.imported}"


@dataclass(frozen=True)
class Module:
    """One source file of the package."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        """What stands below the package's name; "" for the package itself."""
        return room_of(self.name)


def room_of(dotted: str) -> str:
    """Return the room of a dotted name of the package."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


@cache
def modules() -> tuple[Module, ...]:
    """Return all modules of the package, parsed."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE.parent).with_suffix("")
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        found.append(Module(".".join(parts), path, tree))
    return tuple(found)


@cache
def imports_of(module: Module) -> tuple[Import, ...]:
    """Return what a module imports, wherever in its code that stands."""
    return tuple(_imports(module.tree, module.name, for_types=False))


def _imports(node: ast.AST, module: str, *, for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(module, alias.name, for_types, child.lineno)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{module}, line {child.lineno}: a relative import"
            for alias in child.names:
                yield Import(module, f"{child.module}.{alias.name}", for_types, child.lineno)
        else:
            test = child.test if isinstance(child, ast.If) else None
            is_for_types = isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
            yield from _imports(child, module, for_types=for_types or is_for_types)
