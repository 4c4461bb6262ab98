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
LOG = re.compile(r"_(\w+_)?log|bound_log|.*\.log")
# It writes what others hand it.
WRITER = "modular_tf.events.event_log"


class Call(NamedTuple):
    """One place where an event is logged."""

    where: str
    name: str | None  # None: not a constant
    levels: frozenset[str]
    keys: frozenset[str | None]


def _writers(expression: ast.expr) -> list[ast.Attribute]:
    """Return what writes in an expression like `_log.info if ok else _log.warning`."""
    return [
        node
        for node in ast.walk(expression)
        if isinstance(node, ast.Attribute)
        and LOG.fullmatch(ast.unparse(node.value))
        and node.attr not in {"bind", "is_enabled_for"}  # which write nothing
    ]


def _calls() -> Iterator[Call]:
    """Yield the calls that log, through a local name as well."""
    for module in modules():
        functions = (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef))
        for function in functions if module.name != WRITER else ():
            nodes = list(ast.walk(function))
            named = {
                node.targets[0].id: node.value
                for node in nodes
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
            for node in nodes:
                if isinstance(node, ast.Call):
                    is_name = isinstance(node.func, ast.Name)
                    writer = named.get(node.func.id) if is_name else node.func
                    if writer is not None and (writers := _writers(writer)):
                        yield _call(f"{module.name}:{node.lineno}", node, writers)


def _call(where: str, node: ast.Call, writers: list[ast.Attribute]) -> Call:
    levels = frozenset(writer.attr for writer in writers)
    # `write(level, name, values)` takes its level and its keys as arguments.
    is_write = levels == {"write"}
    name = node.args[1 if is_write else 0]
    value = name.value if isinstance(name, ast.Constant) else None
    if is_write and value in KNOWN:
        return Call(where, value, frozenset(KNOWN[value].levels), frozenset(KNOWN[value].keys))
    keys = frozenset(keyword.arg for keyword in node.keywords)
    is_bound = not ast.unparse(writers[0].value).startswith("_")
    return Call(where, value, levels, keys | BOUND if is_bound else keys)


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
