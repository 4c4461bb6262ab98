"""Threads are started by one function, which knows what to do where that fails."""

from __future__ import annotations

import ast

from tests.architecture.imports import Module, modules

# The command that checks plugins has processes of its own, and starts no threads in applications.
_STARTERS = ("modular_tf.concurrency.threads", "modular_tf.check")


def _threads_started(module: Module) -> list[int]:
    """Return the lines that start a `threading.Thread` themselves."""
    made = {
        ast.unparse(node.targets[0])
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("threading.Thread(")
    }
    return [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "start"
        and (
            ast.unparse(node.value) in made
            or ast.unparse(node.value).startswith("threading.Thread(")
        )
    ]


def test_no_module_starts_threads_itself():
    started = {module.name: _threads_started(module) for module in modules()}

    assert started["modular_tf.check.device.waiting"] != []  # else nothing would be noticed
    assert {n: at for n, at in started.items() if at and not n.startswith(_STARTERS)} == {}
