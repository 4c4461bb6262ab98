"""Plugins' filesystems for fsspec, and so for pandas, pyarrow, dask and the rest.

    import fsspec, modular_tf as mtf

    with mtf.PluginService() as service:
        service.load()
        mtf.fsspec.register(service)
        with fsspec.open("s3://bucket/key.csv") as file: ...

Needs the extra `fsspec`.
"""

from __future__ import annotations

from modular_tf.fsspec.filesystem import ModularFileSystem, filesystem_class
from modular_tf.fsspec.options import IgnoredOptionWarning
from modular_tf.fsspec.registration import OwnClientWarning, Registration, register

__all__ = [
    "IgnoredOptionWarning",
    "ModularFileSystem",
    "OwnClientWarning",
    "Registration",
    "filesystem_class",
    "register",
]
