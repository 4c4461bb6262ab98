"""Rules of devices at random work."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-300",
        "Whatever work is enqueued, memory holds what some order that is allowed leaves there.",
        "Programs compute with data that is not there yet, or with another's.",
        "Replay the sequence that is named, in a debugger if need be; it is as short as it gets.",
        "the other rules of devices, taken together",
    ),
)
