"""Whether a server can be reached at all, asked before a plugin waits for it by its own rules."""

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
    from modular_tf.loading.defect_answers import Answers

_TIMEOUT_SECONDS = 5.0
_GOOD_FOR_SECONDS = 5.0
# A "not found" that took this long smells of retries.
_SUSPICIOUS_SECONDS = 3.0
_PORTS = {"http": 80, "https": 443}


class EndpointCheck:
    """A TCP connection to the server that will be asked, tried every few seconds [any thread].

    Servers behind a proxy are not tried: only the proxy can reach them.

    Args:
        answers: Where the server's address is found.
        plugin: For messages.
    """

    def __init__(self, answers: Answers, plugin: str) -> None:
        self._variables = answers.endpoint_variables
        self._switches = answers.endpoint_switches
        self._pattern = re.compile(answers.endpoint_pattern) if answers.endpoint_pattern else None
        self._plugin = plugin
        self._good_until: dict[str, float] = {}
        self._lock = ForkLock()

    def require(self, operation: str, path: str) -> None:
        """Return if the server took a connection lately, or none is known.

        Raises:
            UnavailableError: It takes none.
        """
        url = self._url(path)
        if url is None or time.monotonic() < self._good_until.get(url, 0.0):
            return
        with self._lock:
            if time.monotonic() >= self._good_until.get(url, 0.0):
                self._connect(url, operation, path)

    def suspect(self, code: Code, operation: str, path: str, seconds: float) -> None:
        """After a failure, say that the server is gone where it is.

        Args:
            code: What the plugin said.
            operation: During what.
            path: The URI concerned.
            seconds: How long it took to fail.

        Raises:
            UnavailableError: The server takes no connection any more.
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
                    f"{operation} {path!r}: {host or url} takes no connection: {error}"
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
