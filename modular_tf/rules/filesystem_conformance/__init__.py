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
    init,
    library,
    memory,
    reading,
    regions,
    registration,
    renaming,
    settings,
    statistics,
    statuses,
    transactions,
    translation,
    writing,
)

RULES = (
    *library.RULES,
    *registration.RULES,
    *init.RULES,
    *statuses.RULES,
    *translation.RULES,
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
    *transactions.RULES,
    *settings.RULES,
    *memory.RULES,
)
