"""Names of `memory_watch`, until no module imports them from here."""

from modular_tf.check.memory_watch import (
    Depth,
    HeapWatch,
)

__all__ = [
    "Depth",
    "HeapWatch",
]
