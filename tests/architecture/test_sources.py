"""Sources stay readable: names, and lists of public names that are true."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import modular_tf
from tests.architecture.imports import Module, modules

CHECKOUT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "contrib", "modular_tf", "scripts", "tests")
SOURCE_SUFFIXES = {".py", ".pyi", ".c", ".cc", ".h", ""}  # scripts have none
# Names that tell nothing of the content, so that anything ends up in them.
JUNK_DRAWERS = {
    "base", "common", "data", "general", "helper", "helpers", "impl", "lib", "main_utils", "misc",
    "other", "shared", "stuff", "things", "tool", "tools", "types", "util", "utils",
}  # fmt: skip


def sources() -> list[Path]:
    return [
        path
        for folder in FOLDERS
        for path in sorted((CHECKOUT / folder).rglob("*"))
        if path.suffix in SOURCE_SUFFIXES and path.is_file() and "__pycache__" not in path.parts
    ]


def test_there_is_something_to_check():
    assert len(sources()) > 300
    assert len(modules()) > 100


def test_no_file_or_folder_is_a_junk_drawer():
    named = {
        part.partition(".")[0]: path
        for path in sources()
        for part in path.relative_to(CHECKOUT).parts
    }

    assert {name: path for name, path in named.items() if name in JUNK_DRAWERS} == {}


@pytest.mark.parametrize("name", modular_tf.__all__)
def test_public_names_of_the_package_resolve(name):
    assert getattr(modular_tf, name) is not None


def test_the_package_refuses_other_names():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = modular_tf.nonsense


def test_the_package_lists_its_public_names():
    assert dir(modular_tf) == sorted(modular_tf.__all__)


def _declared(module: Module) -> list[str] | None:
    """Return a module's `__all__`."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def _defined(module: Module) -> set[str]:
    """Return the public functions and classes that a module defines at its top."""
    return {
        node.name
        for node in module.tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
    }


WITH_LIST = [module for module in modules() if _declared(module) is not None]


@pytest.mark.parametrize("module", WITH_LIST, ids=lambda module: module.name)
def test_a_list_of_public_names_is_true(module):
    declared = _declared(module)
    loaded = importlib.import_module(module.name)

    assert len(declared) == len(set(declared))
    assert [name for name in declared if not hasattr(loaded, name)] == []
    assert _defined(module) - set(declared) == set()
