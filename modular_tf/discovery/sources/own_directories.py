"""Sources 8 and 9: the user's drop-in directory, a checkout's, and the bundled plugins."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.sources.named_paths import IGNORED_AS_PRIVILEGED
from modular_tf.discovery.user_directories import ignored_variables
from modular_tf.rules import Violation
from modular_tf.rules.shortage import raise_shortage
from modular_tf.rules.user_places import ABSOLUTE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.sources.search_log import SearchLog
    from modular_tf.discovery.sources.search_paths import SearchPaths

__all__ = ["search_bundled", "search_user_directories"]

_USUAL_DIRECTORY = "~/.local/share/modular_tf/plugins"
_CHECKOUT_DIRECTORY = "plugin_dirs"
_BUILD_FILE = "pyproject.toml"
_names_this_project = re.compile(rb'^name = "modular_tf"\s*$', re.MULTILINE).search
_MOST_OF_A_BUILD_FILE = 1 << 20


def search_user_directories(paths: SearchPaths, log: SearchLog) -> None:
    """Search the user's drop-in directory and, in a source checkout, `plugin_dirs`."""
    source, path = Source.USER_DIRECTORY, paths.user_directory or _USUAL_DIRECTORY
    why_not = IGNORED_AS_PRIVILEGED if paths.privileged else paths.why_no_user_directory
    if paths.user_directory is not None and not paths.privileged:
        log.look_at(path, source, path)
    elif paths.user_directory is not None or paths.why_no_user_directory is not None:
        log.note_place(path, source, path, exists=False, hits=0, ignored=why_not)
    if not paths.privileged:
        _note_ignored_variables(paths, log)
    for root in _checkouts(paths):
        for directory in _with_subdirectories(os.path.join(root, _CHECKOUT_DIRECTORY)):
            log.look_at(directory, source, directory)


def search_bundled(paths: SearchPaths, log: SearchLog) -> None:
    """Search the reference plugins that come with this package."""
    for package in paths.package_directories:
        path = os.path.join(package, "plugins")
        log.look_at(path, Source.BUNDLED, "modular_tf")


def _checkouts(paths: SearchPaths) -> Iterator[str]:
    """Yield source checkouts that this package is run from.

    The build file tells them by the name of the project: the package may also lie in the checkout
    of another one, or beside a build file that somebody has left in site-packages.
    """
    for package in paths.package_directories:
        root = os.path.dirname(package)
        try:
            with open(os.path.join(root, _BUILD_FILE), "rb") as file:
                text = file.read(_MOST_OF_A_BUILD_FILE)
        except OSError as error:
            raise_shortage(error)
            continue
        if _names_this_project(text):
            yield root


def _note_ignored_variables(paths: SearchPaths, log: SearchLog) -> None:
    for variable in ignored_variables(paths.environment):
        problem = Violation(ABSOLUTE_VARIABLE, str(variable), origin=variable.name)
        log.problems.append(problem)


def _with_subdirectories(path: str) -> Iterator[str]:
    """Yield a directory and those in it: a checkout keeps one folder for each plugin."""
    if not os.path.isdir(path):
        return
    yield path
    for name in sorted(os.listdir(path)):
        below = os.path.join(path, name)
        if os.path.isdir(below):
            yield below
