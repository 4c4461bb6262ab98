"""Rules of filesystem plugins beyond registration: what each operation must do."""

from __future__ import annotations

from modular_tf.check.rules.filesystem import (
    appending,
    children,
    copying,
    deletion,
    directories,
    existence,
    globbing,
    library,
    load,
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
    *load.RULES,
)
