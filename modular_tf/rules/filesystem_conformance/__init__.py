"""Rules of filesystem plugins beyond registration: what each operation must do."""

from __future__ import annotations

from modular_tf.rules.filesystem_conformance import (
    children,
    copying,
    existence,
    globbing,
    renaming,
    statistics,
)

RULES = (
    *renaming.RULES,
    *copying.RULES,
    *existence.RULES,
    *statistics.RULES,
    *children.RULES,
    *globbing.RULES,
)
