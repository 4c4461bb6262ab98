"""Names of `filesystem.access`, until no module imports them from here."""

from modular_tf.check.filesystem.access import (
    has_slot,
    host_offers,
)

__all__ = [
    "has_slot",
    "host_offers",
]
