"""Rules of filesystems at random work."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-320",
        "Whatever operations came before, the next one does what a tree of files would do.",
        "Programs meet sequences that nobody has tried by hand, and lose data or crash in them.",
        "Replay the sequence that is named, in a debugger if need be; it is as short as it gets.",
        "the other rules of filesystems, taken together",
    ),
)
