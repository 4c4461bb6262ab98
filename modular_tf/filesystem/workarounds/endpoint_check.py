"""A check that a server can be reached, made before the plugin starts its own long retries."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import UnavailableError

if TYPE_CHECKING:
    from modular_tf.loading.workarounds import Workarounds

_TIMEOUT_SECONDS = 5.0
_GOOD_FOR_SECONDS = 5.0
# A NOT_FOUND that took this long probably came from retries of a dead server.
_SUSPICIOUS_SECONDS = 3.0
_PORTS = {"http": 80, "https": 443}


class EndpointCheck:
    """Opens a TCP connection to the plugin's server every few seconds [any thread]

    Servers behind a proxy are not checked: only the proxy can reach them.

    Args:
        workarounds: Where the server's address is found.
        plugin: The plugin's name for messages.
    """

    def __init__(self, workarounds: Workarounds, plugin: str) -> None:
        self._variables = workarounds.endpoint_variables
        self._switches = workarounds.endpoint_switches
        self._pattern = (
            re.compile(workarounds.endpoint_pattern) if workarounds.endpoint_pattern else None
        )
        self._plugin = plugin
        self._good_until: dict[str, float] = {}
        self._lock = ForkLock()

    def require(self, operation: str, path: str) -> None:
        """Return if the server accepted a connection recently, or its address is unknown.

        Raises:
            UnavailableError: The server accepts no connection.
        """
        url = self._url(path)
        if url is None or time.monotonic() < self._good_until.get(url, 0.0):
            return
        with self._lock:
            if time.monotonic() >= self._good_until.get(url, 0.0):
                self._connect(url, operation, path)

    def suspect(self, code: Code, operation: str, path: str, seconds: float) -> None:
        """Check the server again after a failure that a dead server may have caused.

        Args:
            code: The plugin's status.
            operation: The operation that failed.
            path: Its URI.
            seconds: How long it took to fail.

        Raises:
            UnavailableError: The server accepts no connection any more.
        """
        if code is Code.NOT_FOUND and seconds < _SUSPICIOUS_SECONDS:
            return
        url = self._url(path)
        if url is not None:
            self._good_until.pop(url, None)
            self.require(operation, path)

    def _url(self, path: str) -> str | None:
        for variable in self._variables:
            if value := os.environ.get(variable):
                return value if "://" in value else f"https://{value}"
        for variable, url in self._switches.items():
            if variable in os.environ:
                return url
        match = self._pattern.search(path) if self._pattern else None
        return f"{match.groupdict().get('scheme', 'http')}://{match['host']}" if match else None

    def _connect(self, url: str, operation: str, path: str) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not _is_behind_proxy(parts.scheme, parts.netloc):
            try:
                port = parts.port or _PORTS.get(parts.scheme, 443)
                socket.create_connection((host, port), _TIMEOUT_SECONDS).close()
            except (OSError, ValueError) as error:
                raise UnavailableError(
                    f"{operation} {path!r}: {host or url} accepts no connection: {error}"
                    f" (plugin {self._plugin})",
                    plugin=self._plugin,
                    path=path,
                    operation=operation,
                ) from error
        self._good_until[url] = time.monotonic() + _GOOD_FOR_SECONDS


def _is_behind_proxy(scheme: str, host: str) -> bool:
    names = {f"{scheme}_proxy", "all_proxy"}
    if not any(name.lower() in names and value for name, value in os.environ.items()):
        return False
    from urllib.request import proxy_bypass  # noqa: PLC0415  (heavy, rarely needed)

    return not proxy_bypass(host)
