"""The filesystem classes by scheme, created on access: `by_scheme.s3` serves `s3`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.fsspec.filesystem import filesystem_class

if TYPE_CHECKING:
    from modular_tf.fsspec.filesystem import ModularFileSystem


def __getattr__(name: str) -> type[ModularFileSystem]:
    if name.startswith("_"):
        raise AttributeError(name)
    return filesystem_class(name)
