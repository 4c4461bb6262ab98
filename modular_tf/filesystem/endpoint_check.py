"""Whether a server can be reached at all, asked before a plugin waits for it by its own rules."""

from __future__ import annotations

import os
import socket
import threading
import time
from urllib.parse import urlsplit

from modular_tf.errors import UnavailableError

_TIMEOUT_SECONDS = 5.0
_GOOD_FOR_SECONDS = 30.0
_PORTS = {"http": 80, "https": 443}


class EndpointCheck:
    """A TCP connection to the server that a variable names, tried now and then. [any thread]

    Args:
        variable: Name of the environment variable; nothing is checked while it is unset.
        plugin: For messages.
    """

    def __init__(self, variable: str, plugin: str) -> None:
        self._variable = variable
        self._plugin = plugin
        self._good_until = 0.0
        self._lock = threading.Lock()

    def require(self, operation: str, path: str) -> None:
        """Return if the server took a connection lately.

        Raises:
            UnavailableError: It takes none.
        """
        url = os.environ.get(self._variable)
        if not url or time.monotonic() < self._good_until:
            return
        with self._lock:
            if time.monotonic() >= self._good_until:
                self._connect(url, operation, path)

    def _connect(self, url: str, operation: str, path: str) -> None:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port or _PORTS.get(parts.scheme, 443)
        try:
            socket.create_connection((parts.hostname or "", port), _TIMEOUT_SECONDS).close()
        except OSError as error:
            raise UnavailableError(
                f"{operation} {path!r}: {self._variable}={url} takes no connection: {error}"
                f" (plugin {self._plugin})",
                plugin=self._plugin,
                path=path,
                operation=operation,
            ) from error
        self._good_until = time.monotonic() + _GOOD_FOR_SECONDS

    def doubt(self) -> None:
        """Try again at the next operation."""
        self._good_until = 0.0
