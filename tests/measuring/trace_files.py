"""Traces, read by the rules of Perfetto's importer for JSON."""

from __future__ import annotations

import json
from numbers import Real
from pathlib import Path

_TYPES = {"name": str, "cat": str, "ph": str, "ts": Real, "dur": Real, "pid": int, "tid": int}


def events_of(path, **arguments):
    """Return the events of a trace that have these arguments; each one is a complete event."""
    events = json.loads(Path(path).read_bytes().decode("utf-8"))
    assert isinstance(events, list)
    for event in events:
        assert {
            key: isinstance(event.get(key), kind) for key, kind in _TYPES.items()
        } == dict.fromkeys(_TYPES, True)
        assert event["ph"] == "X"
        assert event["dur"] >= 0
        assert isinstance(event["args"], dict)
    return [event for event in events if arguments.items() <= event["args"].items()]


def names(events):
    """Return the operations, in the order in which they ended."""
    return [event["name"] for event in events]
