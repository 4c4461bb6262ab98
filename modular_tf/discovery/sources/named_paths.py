"""Sources 1 to 4: paths that the caller, the environment or the configuration name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source

if TYPE_CHECKING:
    from modular_tf.discovery.sources.search_log import SearchLog
    from modular_tf.discovery.sources.search_paths import SearchPaths

__all__ = [
    "IGNORED_AS_PRIVILEGED",
    "PLUGIN_PATH_VARIABLE",
    "TF_LIBRARY_PATH_VARIABLE",
    "search_arguments",
    "search_config",
    "search_environment",
    "search_tf_environment",
]

PLUGIN_PATH_VARIABLE = "MODULAR_TF_PLUGIN_PATH"
TF_LIBRARY_PATH_VARIABLE = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
IGNORED_AS_PRIVILEGED = "the process has rights that its user lacks (setuid or setgid)"


def search_arguments(paths: SearchPaths, log: SearchLog) -> None:
    """Search the files and directories that the caller names."""
    for path in paths.arguments:
        log.look_at(path, Source.ARGUMENT, "argument", required=True)


def search_environment(paths: SearchPaths, log: SearchLog) -> None:
    """Search the files and directories of MODULAR_TF_PLUGIN_PATH; empty parts do not count."""
    value = paths.environment.get(PLUGIN_PATH_VARIABLE, "")
    for path in filter(None, value.split(os.pathsep)):
        _look_unless_privileged(path, Source.ENVIRONMENT, PLUGIN_PATH_VARIABLE, paths, log)


def search_tf_environment(paths: SearchPaths, log: SearchLog) -> None:
    """Search TF_PLUGGABLE_DEVICE_LIBRARY_PATH: one file or directory, as in TensorFlow."""
    path = paths.environment.get(TF_LIBRARY_PATH_VARIABLE, "")
    if path:
        origin = TF_LIBRARY_PATH_VARIABLE
        _look_unless_privileged(path, Source.TF_ENVIRONMENT, origin, paths, log)


def search_config(paths: SearchPaths, log: SearchLog) -> None:
    """Search the configuration's `plugin_dirs`."""
    for path in paths.config_directories:
        _look_unless_privileged(path, Source.CONFIG, paths.config_origin, paths, log)


def _look_unless_privileged(
    path: str, source: Source, origin: str, paths: SearchPaths, log: SearchLog
) -> None:
    if paths.privileged:
        log.note_place(path, source, origin, exists=False, hits=0, ignored=IGNORED_AS_PRIVILEGED)
    else:
        log.look_at(path, source, origin, required=True)
