"""Sources 8 and 9: the user's drop-in directory, a checkout's, and the bundled plugins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.named_paths import IGNORED_AS_PRIVILEGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.search_log import SearchLog
    from modular_tf.discovery.search_paths import SearchPaths

__all__ = ["search_bundled", "search_user_directories"]

_CHECKOUT_DIRECTORY = "plugin_dirs"


def search_user_directories(paths: SearchPaths, log: SearchLog) -> None:
    """Look into the user's drop-in directory and, in a source checkout, into `plugin_dirs`."""
    source, path = Source.USER_DIRECTORY, paths.user_directory
    if path is not None and paths.privileged:
        log.note_place(path, source, path, exists=False, hits=0, ignored=IGNORED_AS_PRIVILEGED)
    elif path is not None:
        log.look_at(path, source, path)
    for root in _checkouts(paths):
        for directory in _with_subdirectories(os.path.join(root, _CHECKOUT_DIRECTORY)):
            log.look_at(directory, source, directory)


def search_bundled(paths: SearchPaths, log: SearchLog) -> None:
    """Look at the reference plugins that come with this package."""
    for package in paths.package_directories:
        path = os.path.join(package, "plugins")
        log.look_at(path, Source.BUNDLED, "modular_tf")


def _checkouts(paths: SearchPaths) -> Iterator[str]:
    """Yield source checkouts that this package is run from: the build file tells them."""
    for package in paths.package_directories:
        root = os.path.dirname(package)
        if os.path.isfile(os.path.join(root, "pyproject.toml")):
            yield root


def _with_subdirectories(path: str) -> Iterator[str]:
    """Yield a directory and those in it: a checkout keeps one folder for each plugin."""
    if not os.path.isdir(path):
        return
    yield path
    for name in sorted(os.listdir(path)):
        below = os.path.join(path, name)
        if os.path.isdir(below):
            yield below
