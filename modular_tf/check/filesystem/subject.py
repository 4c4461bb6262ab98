"""Names of `filesystem.access`, until no module imports them from here."""

from modular_tf.check.filesystem.access import (
    Reader,
    Region,
    Stat,
    Writer,
)

__all__ = [
    "Reader",
    "Region",
    "Stat",
    "Writer",
]
