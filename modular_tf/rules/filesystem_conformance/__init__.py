"""Rules of filesystem plugins beyond registration: what each operation must do."""

from __future__ import annotations

from modular_tf.rules.filesystem_conformance import (
    appending,
    children,
    copying,
    deletion,
    directories,
    existence,
    globbing,
    reading,
    regions,
    renaming,
    statistics,
    writing,
)

RULES = (
    *reading.RULES,
    *writing.RULES,
    *appending.RULES,
    *regions.RULES,
    *directories.RULES,
    *deletion.RULES,
    *renaming.RULES,
    *copying.RULES,
    *existence.RULES,
    *statistics.RULES,
    *children.RULES,
    *globbing.RULES,
)
