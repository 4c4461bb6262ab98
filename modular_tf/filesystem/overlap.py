"""The old name of `modular_tf.filesystem.location`, until the last import has changed."""

from modular_tf.filesystem.location import (
    Identity,
    Overlap,
    identity,
    is_link,
    is_one_name,
    overlap,
)

__all__ = ["Identity", "Overlap", "identity", "is_link", "is_one_name", "overlap"]
