"""The catalogue of events says what the package logs, all of it and nothing else."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from modular_tf.events.catalogue import EVENTS
from tests.architecture.imports import modules

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = {"debug", "info", "warning"}
KNOWN = {event.name: event for event in EVENTS}
EVERYWHERE = {"event", "level", "logger", "timestamp"}
BOUND = {"plugin", "path"}  # in the `log` of a plugin
# It writes what others hand it.
WRITER = "modular_tf.events.event_log"


class Call(NamedTuple):
    """One place where an event is logged."""

    where: str
    name: str | None  # None: not a constant
    levels: frozenset[str]
    keys: frozenset[str | None]


def _levels(expression: ast.expr) -> frozenset[str]:
    """Return the levels at which an expression like `_log.info if ok else _log.warning` writes."""
    return frozenset(
        node.attr
        for node in ast.walk(expression)
        if isinstance(node, ast.Attribute)
        and (_is_log(node.value) or _is_bound_log(node.value))
        and node.attr not in {"bind", "is_enabled_for"}  # which write nothing
    )


def _is_log(expression: ast.expr) -> bool:
    return (
        isinstance(expression, ast.Name) and re.fullmatch(r"_(\w+_)?log", expression.id) is not None
    )


def _is_bound_log(expression: ast.expr) -> bool:
    """Tell `plugin.log`, and `log` where that was stored."""
    if isinstance(expression, ast.Attribute):
        return expression.attr == "log"
    return isinstance(expression, ast.Name) and expression.id == "bound_log"


def _calls() -> Iterator[Call]:
    for module in modules():
        if module.name == WRITER:
            continue
        for function in ast.walk(module.tree):
            if isinstance(function, ast.FunctionDef):
                for node, writer in _writes(function):
                    yield _call(f"{module.name}:{node.lineno}", node, writer)


def _writes(function: ast.FunctionDef) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls of a function that log, through a local name as well, and what writes."""
    nodes = list(ast.walk(function))
    names = {
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Call):
            named = names.get(node.func.id) if isinstance(node.func, ast.Name) else None
            for writer in (node.func, named):
                if writer is not None and _levels(writer):
                    yield node, writer
                    break


def _call(where: str, node: ast.Call, writer: ast.expr) -> Call:
    levels = _levels(writer)
    # `write(level, name, values)` takes its level and its keys as arguments.
    is_write = levels == {"write"}
    name = node.args[1 if is_write else 0]
    keys = frozenset(keyword.arg for keyword in node.keywords)
    if any(_is_bound_log(part) for part in ast.walk(writer) if isinstance(part, ast.expr)):
        keys |= BOUND
    value = name.value if isinstance(name, ast.Constant) else None
    if is_write and value in KNOWN:
        return Call(where, value, frozenset(KNOWN[value].levels), frozenset(KNOWN[value].keys))
    return Call(where, value, levels, keys)


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return list(_calls())


def test_what_is_logged_is_in_the_catalogue_and_nothing_else_is(calls):
    for call in calls:
        assert call.name in KNOWN, f"{call} is missing from modular_tf/events/catalogue.toml"
        event = KNOWN[call.name]
        assert call.keys == frozenset(event.keys), call
        assert call.levels <= set(event.levels), call

    assert set(KNOWN) - {call.name for call in calls} == set()


def test_the_catalogue_is_well_formed():
    assert len(KNOWN) == len(EVENTS)
    for event in EVENTS:
        assert re.fullmatch(r"[a-z_]+\.[a-z_]+", event.name)
        assert event.meaning.endswith(".")
        assert len(set(event.keys)) == len(event.keys)
        assert EVERYWHERE.isdisjoint(event.keys)
        assert set(event.levels) <= {*LEVELS, "error", "critical"}
