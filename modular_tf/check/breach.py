"""Names of `memory_watch`, until no module imports them from here."""

from modular_tf.check.memory_watch import (
    MEMORY_RULES,
    READ_BUFFER_RULE,
    Breach,
    raise_breach,
    raise_harm_at_loading,
    raise_harm_to_heap,
)

__all__ = [
    "MEMORY_RULES",
    "READ_BUFFER_RULE",
    "Breach",
    "raise_breach",
    "raise_harm_at_loading",
    "raise_harm_to_heap",
]
