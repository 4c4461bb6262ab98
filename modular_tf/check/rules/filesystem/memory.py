"""Rules of the memory that a plugin may touch, whatever the operation."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-329",
        "A plugin writes only into its own memory and what it is lent, and frees a block once.",
        "The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.",
        "Run the plugin with AddressSanitizer, and look at the calls before the one that is named.",
        "the C language; filesystem.h, on const arguments",
    ),
)
