"""Rules of plugins whose file is replaced while they serve."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

RULES: tuple[Rule, ...] = (
    Rule(
        "LD-085",
        "A file that replaces a serving plugin's is accepted as the old one was.",
        "The old generation goes on serving, from the bytes that it was loaded from; a process "
        "that starts now finds the new file and refuses it.",
        "Put the old file back, or one that loads; `modular-tf why` with the file's path tells "
        "what is wrong with this one.",
        "live drop-in: a replacement that fails must not take down what works",
        Severity.WARNING,
    ),
)
