"""Functions under the names that TensorFlow's users know, on the default service."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.errors import NotFoundError, PluginError
from modular_tf.service.default import default_service

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.service.report import Report

__all__ = ["load_pluggable_device_library", "register_filesystem_plugin"]


def register_filesystem_plugin(plugin_location: str | os.PathLike[str]) -> None:
    """Load a filesystem plugin (`tf.experimental.register_filesystem_plugin`).

    Args:
        plugin_location: The library's file.

    Raises:
        NotFoundError: There is no such file.
        PluginError: It was refused, or one of its schemes was; the others are registered.
    """
    path = os.fspath(plugin_location)
    if not os.path.exists(path):
        raise NotFoundError(f"the file {path!r} does not exist", path=path, operation="load")
    _loaded_or_raise(default_service().load(path), [path])


def load_pluggable_device_library(library_location: str | os.PathLike[str]) -> None:
    """Load one device plugin, or all libraries of a directory.

    Args:
        library_location: A library's file, or a directory with some.

    Raises:
        NotFoundError: There is nothing at that place, or no library in the directory.
        PluginError: A library was refused; the others are loaded.
    """
    path = os.fspath(library_location)
    paths = _libraries(path) if os.path.isdir(path) else [path]
    if not paths or not os.path.exists(path):
        raise NotFoundError(f"no library at {path!r}", path=path, operation="load")
    _loaded_or_raise(default_service().load(*paths), paths)


def _libraries(directory: str) -> list[str]:
    from modular_tf.discovery.sources.search_log import is_plugin_file_name  # noqa: PLC0415

    return [
        os.path.join(directory, name)
        for name in sorted(os.listdir(directory))
        if is_plugin_file_name(name)
    ]


def _loaded_or_raise(report: Report, paths: Iterable[str]) -> None:
    """Raise for the first of some files that did not load, as TensorFlow's functions do.

    Raises:
        PluginError: With the reason's rule.
    """
    real = {os.path.realpath(path) for path in paths}
    for record in report.plugins:
        if record.path and os.path.realpath(record.path) in real and record.reason is not None:
            reason = record.reason
            raise PluginError(
                f"{record.path}: {reason.message}", plugin=record.name, rule=reason.rule
            )
