"""A check that a library can be opened, made before the plugin opens it by itself.

Some plugins never recover from their first failure, so that failure must be prevented.
"""

from __future__ import annotations

import os
from pathlib import Path

from modular_tf.errors import NotFoundError, UnavailableError
from modular_tf.native.library import Library


class LibraryCheck:
    """Tries to open a library before each call, until that succeeded once [any thread]

    Args:
        places: Paths or names, any of which is enough; `$NAME` is an environment variable.
        plugin: The plugin's name for messages.
    """

    def __init__(self, places: tuple[str, ...], plugin: str) -> None:
        self._places = places
        self._plugin = plugin
        self._found = False

    def require(self, operation: str, path: str) -> None:
        """Return if the library can be opened.

        Raises:
            UnavailableError: It cannot; the message has the dynamic linker's reason for each place.
        """
        if self._found:
            return
        reasons = []
        for place in map(os.path.expandvars, self._places):
            if place.startswith("$"):
                reasons.append(f"{place.split('/')[0][1:]} is not set")
                continue
            try:
                Library.open(place)
            except NotFoundError as error:
                reasons.append(str(error))
            else:
                self._found = True
                return
        raise UnavailableError(
            f"{operation} {path!r}: {self._plugin} needs {Path(self._places[0]).name}:"
            f" {'; '.join(reasons)}",
            plugin=self._plugin,
            path=path,
            operation=operation,
        )
