"""There is one kind of lock (`fork_lock`): what it promises must hold for all of them."""

from __future__ import annotations

import ast

from tests.architecture.imports import NAME, imports_of, modules

OTHER_LOCKS = {"Lock", "RLock", "Semaphore", "BoundedSemaphore", "allocate_lock"}
MAKERS = {"threading", "_thread", "multiprocessing"}
# The kind itself, and `Work`, where a lock that nobody else takes stands for the end of a call.
EXEMPT = {f"{NAME}.concurrency.fork_lock", f"{NAME}.concurrency.threads"}


def test_every_lock_is_of_the_one_kind():
    others = [
        f"{module.name}, line {node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if module.name not in EXEMPT
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in OTHER_LOCKS
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


def _is_context_manager(function: ast.FunctionDef) -> bool:
    return any("contextmanager" in ast.unparse(mark) for mark in function.decorator_list)


def _entered(function: ast.FunctionDef) -> list[ast.expr]:
    """Return what a function enters by `with`, and what it calls `acquire` of."""
    entered = [
        item.context_expr
        for node in ast.walk(function)
        if isinstance(node, ast.With)
        for item in node.items
    ]
    called = [
        node.func.value
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "acquire"
    ]
    return entered + called
