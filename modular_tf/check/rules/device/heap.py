"""The rule of the heap, whatever the function."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-329",
        "A plugin writes only into heap blocks of its own, and frees each once.",
        "The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.",
        "Run the plugin with AddressSanitizer, and look at the calls before the one that is named.",
        "the C language",
    ),
)
