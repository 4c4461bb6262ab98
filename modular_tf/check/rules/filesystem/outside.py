"""The rule of names beside what there is."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-333",
        "Questions about names in a container, volume or folder that is not there are answered.",
        "A mistyped name ends the program, where an exception leaves the plugin.",
        "Catch every exception in every function that C calls, and set a status.",
        "filesystem.h; published plugins, observed",
    ),
)
