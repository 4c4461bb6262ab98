"""What holds for all modules of the package: locks, threads, docstrings, public names."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import modular_tf
from modular_tf import errors
from modular_tf.abi.status_codes import Code
from modular_tf.headers import include_directory
from tests.architecture.imports import NAME, imports_of, modules

LOCKS = {"Lock", "RLock", "Semaphore", "BoundedSemaphore", "allocate_lock"}
MAKERS = {"threading", "_thread", "multiprocessing"}
# The one kind itself, and `Work`, where a lock that nobody else takes stands for an end of a call.
HAVE_LOCKS = {f"{NAME}.concurrency.fork_lock", f"{NAME}.concurrency.threads"}
# The command that checks plugins has processes of its own, and starts no threads in applications.
START_THREADS = (f"{NAME}.concurrency.threads", f"{NAME}.check")


def test_every_lock_is_of_the_one_kind():
    """What `fork_lock` promises must hold for all of them."""
    others = [
        f"{module.name}, line {node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if module.name not in HAVE_LOCKS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in LOCKS
        and isinstance(node.value, ast.Name)
        and node.value.id in MAKERS
    ]

    assert others == []


def test_no_attribute_is_computed_under_a_hidden_lock():
    """`functools.cached_property` has a lock before Python 3.12; `computed_once` has none."""
    users = [
        found.module
        for module in modules()
        for found in imports_of(module)
        if found.imported == "functools.cached_property"
    ]

    assert users == []


def test_no_context_manager_in_python_takes_a_lock():
    """A signal handler may raise between its lines and the body of `with`."""
    wrapped = [
        f"{module.name}.{function.name}"
        for module in modules()
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef)
        and (function.name in {"__enter__", "__aenter__"} or _is_context_manager(function))
        and any("lock" in ast.unparse(item).lower() for item in _entered(function))
    ]

    assert wrapped == []


def _is_context_manager(function):
    return any("contextmanager" in ast.unparse(mark) for mark in function.decorator_list)


def _entered(function):
    """Yield what a function enters by `with`, and what it calls `acquire` of."""
    for node in ast.walk(function):
        if isinstance(node, ast.With):
            yield from (item.context_expr for item in node.items)
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "acquire":
            yield called.value


def test_threads_are_started_by_one_function():
    """It knows what to do where that fails."""
    started = {module.name: _threads_started(module) for module in modules()}

    assert started["modular_tf.check.device.waiting"] != []  # else nothing would be noticed
    assert {n: at for n, at in started.items() if at and not n.startswith(START_THREADS)} == {}


def _threads_started(module):
    """Return the lines that start a `threading.Thread` themselves."""
    nodes = list(ast.walk(module.tree))
    made = {
        ast.unparse(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("threading.Thread(")
    }
    starts = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "start")
    return [
        node.lineno
        for node in starts
        if (owner := ast.unparse(node.value)) in made or owner.startswith("threading.Thread(")
    ]


def test_the_public_names_of_the_package_are_there_and_no_others():
    assert [name for name in modular_tf.__all__ if getattr(modular_tf, name) is None] == []
    assert dir(modular_tf) == sorted(modular_tf.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = modular_tf.nonsense


def test_every_status_code_has_an_error_class_of_its_own_and_is_that_of_the_header():
    header = Path(include_directory(), "modular_tf", "status.h").read_text(encoding="utf-8")
    pairs = re.findall(r"\bTF_([A-Z_]+) = (\d+)", header)
    by_class = {errors.error_class(code): code for code in Code if code is not Code.OK}

    assert {name: int(number) for name, number in pairs} == {code.name: code for code in Code}
    assert len(by_class) == len(Code) - 1
    assert all(cls.default_code is code for cls, code in by_class.items())
    assert errors.error_class(Code.OK) in by_class  # a plugin that fails with OK broke its contract


def test_every_error_class_is_drawn_in_the_tree():
    found = [getattr(errors, name) for name in errors.__all__]
    classes = [cls for cls in found if inspect.isclass(cls) and issubclass(cls, Exception)]

    assert [cls for cls in classes if not issubclass(cls, errors.ModularTFError)] == []
    assert [cls for cls in classes if not re.search(rf"\b{cls.__name__}\b", errors.__doc__)] == []
