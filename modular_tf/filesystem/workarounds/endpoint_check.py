"""A check that a server can be reached, made before the plugin starts its own long retries."""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.loading.workarounds import Workarounds

_TIMEOUT_SECONDS = 4.0
_GOOD_FOR_SECONDS = 5.0
# A NOT_FOUND that took this long probably came from retries of a dead server.
_SUSPICIOUS_SECONDS = 3.0
_PORTS = {"http": 80, "https": 443}


class _Server(NamedTuple):
    """Where a plugin's server is, and what says so.

    Attributes:
        url: Its URL.
        variable: The variable that holds it, None if the URI or the plugin names it.
        has_scheme: Whether the variable names a scheme.
        is_default: Whether nothing names the server, so that only its name can be checked.
    """

    url: str
    variable: str | None = None
    has_scheme: bool = True
    is_default: bool = False

    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)

    def __str__(self) -> str:
        try:
            return ":".join(map(str, self.address()))
        except ValueError:  # its port is no number
            return urlsplit(self.url).netloc.rpartition("@")[2]


class EndpointCheck:
    """Opens a TCP connection to the plugin's server every few seconds [any thread]

    Servers behind a proxy are not checked: only the proxy can reach them.

    Args:
        workarounds: Where the server's address is found.
        plugin: The plugin's name for messages.
        environment: The variables that the plugin sees.
    """

    def __init__(
        self, workarounds: Workarounds, plugin: str, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._environment = environment
        self._variables = workarounds.endpoint_variables
        self._switches = workarounds.endpoint_switches
        self._pattern = (
            re.compile(workarounds.endpoint_pattern) if workarounds.endpoint_pattern else None
        )
        self._default = workarounds.endpoint_default
        self._assumed_scheme = workarounds.endpoint_without_scheme
        self._plugin = plugin
        self._good_until: dict[_Server, float] = {}
        self._lock = ForkLock()

    def require(self, operation: str, path: str) -> None:
        """Return if the server accepted a connection recently, or its address is unknown.

        Raises:
            UnavailableError: The server accepts no connection.
        """
        server = self._server(path)
        if server is None or time.monotonic() < self._good_until.get(server, 0.0):
            return
        with self._lock:
            if time.monotonic() >= self._good_until.get(server, 0.0):
                self._reach(server, operation, path)

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
        server = self._server(path)
        if server is not None:
            self._good_until.pop(server, None)
            self.require(operation, path)

    def server_of(self, path: str) -> str:
        """Return host and port of the server of a URI, for messages."""
        server = self._server(path)
        return "the store" if server is None else str(server)

    def _server(self, path: str) -> _Server | None:
        for variable in self._variables:
            if value := self._environment.get(variable):
                has_scheme = "://" in value
                scheme = "" if has_scheme else f"{self._assumed_scheme or 'https'}://"
                return _Server(f"{scheme}{value}", variable, has_scheme)
        for variable, url in self._switches.items():
            if variable in self._environment:
                return _Server(url, variable)
        match = self._pattern.search(path) if self._pattern else None
        if match:
            return _Server(f"{match.groupdict().get('scheme', 'http')}://{match['host']}")
        return _Server(f"https://{self._default}", is_default=True) if self._default else None

    def _reach(self, server: _Server, operation: str, path: str) -> None:
        parts = urlsplit(server.url)
        if not _is_behind_proxy(parts.scheme, parts.netloc, self._environment):
            try:
                end = time.monotonic() + _TIMEOUT_SECONDS
                _resolve(*server.address())
                if not server.is_default:
                    self._connect(server, max(_TIMEOUT_SECONDS / 4, end - time.monotonic()))
            except (OSError, ValueError) as error:
                raise UnavailableError(
                    f"{operation} {path!r}: {self._problem(server, error)} (plugin {self._plugin})",
                    plugin=self._plugin,
                    path=path,
                    operation=operation,
                ) from error
        self._good_until[server] = time.monotonic() + _GOOD_FOR_SECONDS

    def _connect(self, server: _Server, timeout: float) -> None:
        host, port = server.address()
        with socket.create_connection((host, port), timeout) as connection:
            if self._assumed_scheme == "https" and not server.has_scheme:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE  # the plugin verifies; this asks for TLS alone
                connection.settimeout(timeout / 2)
                context.wrap_socket(connection, server_hostname=host).close()

    def _problem(self, server: _Server, error: Exception) -> str:
        """Return what is wrong with a server, and what to do."""
        if isinstance(error, ssl.SSLError) or (
            not server.has_scheme and isinstance(error, (TimeoutError, ConnectionResetError))
        ):
            return (
                f"{server.variable} names no scheme, so the plugin speaks TLS, which {server} does"
                f" not: {error}; begin it with http:// if the server has none"
            )
        if server.is_default:
            return (
                f"{server} has no address: {error}; connect this machine to a network, or set"
                f" {self._variables[0]} to the server's URL"
            )
        remedy = f"; {server.variable} names it: correct it" if server.variable else "; check it"
        return f"{server} accepts no connection: {error}{remedy}, or start the server"


def _resolve(host: str, port: int) -> None:
    """Look a host's name up.

    Raises:
        OSError: It has no address, or none was told in time.
    """
    results: list[OSError | UnicodeError | None] = []

    def look_up() -> None:
        try:
            socket.getaddrinfo(host, port)
            results.append(None)
        except (OSError, UnicodeError) as error:
            results.append(error)

    thread = threading.Thread(target=look_up, name="modular_tf-resolve", daemon=True)
    start_thread(thread)
    thread.join(_TIMEOUT_SECONDS)
    if not results:
        raise TimeoutError(f"no answer to the name {host!r} in {_TIMEOUT_SECONDS:.0f} seconds")
    if results[0] is not None:
        raise OSError(*results[0].args) from results[0]


def _is_behind_proxy(scheme: str, host: str, environment: Mapping[str, str]) -> bool:
    said = {name.lower(): value for name, value in environment.items() if value}
    # As urllib reads them, a name in small letters counts more.
    said.update({name: value for name, value in environment.items() if name.islower()})
    if not any(said.get(name) for name in (f"{scheme}_proxy", "all_proxy")):
        return False
    # Heavy, and rarely needed; it has no types.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # noqa: PLC0415

    return not proxy_bypass_environment(host, {"no": said.get("no_proxy", "")})
