"""Rules of plugins that are registered before they are mapped."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

RULES: tuple[Rule, ...] = (
    Rule(
        "LD-095",
        "A plugin registers what it registered when it was tried.",
        "What it offers now serves; what it offered then and does not now is gone.",
        "If the plugin's offer depends on its surroundings, such as variables or hardware, set "
        'load = "eager" in the configuration.',
        "design, scan cache",
        Severity.WARNING,
    ),
)
