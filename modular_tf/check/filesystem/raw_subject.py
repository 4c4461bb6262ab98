"""Names of `filesystem.slots`, until no module imports them from here."""

from modular_tf.check.filesystem.slots import (
    RawFilesystem,
    open_raw,
)

__all__ = [
    "RawFilesystem",
    "open_raw",
]
