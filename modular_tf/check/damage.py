"""Names of `memory_watch`, until no module imports them from here."""

from modular_tf.check.memory_watch import (
    is_damaged,
    loading,
    note_damage,
)

__all__ = [
    "is_damaged",
    "loading",
    "note_damage",
]
