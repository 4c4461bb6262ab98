"""Names of `calls`, until no module imports them from here."""

from modular_tf.check.calls import (
    SlotCaller,
    Slots,
)

__all__ = [
    "SlotCaller",
    "Slots",
]
