"""A check that a server can be reached, made before the plugin starts its own long retries."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import ResourceExhaustedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.loading.workarounds import Workarounds

    _Address = tuple[socket.AddressFamily, tuple[Any, ...]]

_TIMEOUT_SECONDS = 4.0  # a quarter more where the name took all of it
_GOOD_FOR_SECONDS = 5.0
# A server that was waited for in vain; what refuses at once is asked each time.
_BAD_FOR_SECONDS = 3.0
_LONG_SECONDS = 0.5
_MOST_SERVERS = 1024
# A NOT_FOUND that took this long probably came from retries of a dead server.
_SUSPICIOUS_SECONDS = 3.0
_PORTS = {"http": 80, "https": 443}
_NO_DESCRIPTOR = frozenset((errno.EMFILE, errno.ENFILE))


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
        except ValueError:  # its port is no number, or a bracket is not closed
            return self.url.partition("://")[2].partition("/")[0].rpartition("@")[2]


class _Look:
    """What was found out about one server, by one thread at a time.

    Attributes:
        lock: Is held while the server is asked.
        until: How long that holds, by the monotonic clock.
        problem: Why it cannot be used; None if it can.
    """

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.until = 0.0
        self.problem: Exception | None = None

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() < self.until

    @property
    def is_good(self) -> bool:
        return self.problem is None and self.is_fresh


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
        self._looks: dict[_Server, _Look] = {}

    def require(self, operation: str, path: str) -> None:
        """Return if the server accepted a connection recently, or its address is unknown.

        Raises:
            UnavailableError: The server accepts no connection, now or a few seconds ago.
            ResourceExhaustedError: No descriptor is left to ask it.
        """
        server = self._server(path)
        if server is None or (look := self._look_at(server)).is_good:
            return
        with look.lock:  # of this server alone: others are not held up by one that is dead
            if not look.is_fresh:
                self._look(server, look)
            problem = look.problem
        if problem is not None:
            raise self._refusal(server, problem, operation, path) from problem

    def _look_at(self, server: _Server) -> _Look:
        look = self._looks.get(server)
        if look is None:
            if len(self._looks) >= _MOST_SERVERS:  # of http: each host of a URI is one
                for other, seen in list(self._looks.items()):
                    if not seen.is_fresh:
                        self._looks.pop(other, None)
            look = self._looks.setdefault(server, _Look())
        return look

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
            look = self._look_at(server)
            if look.is_good:
                look.until = 0.0
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

    def _look(self, server: _Server, look: _Look) -> None:
        """Ask a server. Called with the lock of the look."""
        begun = time.monotonic()
        try:
            self._reach(server, begun + _TIMEOUT_SECONDS)
        except (OSError, ValueError) as error:
            look.problem = error.with_traceback(None)
            took_long = time.monotonic() - begun > _LONG_SECONDS
            look.until = time.monotonic() + _BAD_FOR_SECONDS if took_long else 0.0
        else:
            look.problem = None
            look.until = time.monotonic() + _GOOD_FOR_SECONDS

    def _reach(self, server: _Server, end: float) -> None:
        parts = urlsplit(server.url)
        if _is_behind_proxy(parts.scheme, parts.netloc, self._environment):
            return
        addresses = _resolve(*server.address())
        if server.is_default:
            return
        end = max(end, time.monotonic() + _TIMEOUT_SECONDS / 4)
        for number, address in enumerate(addresses):
            try:
                left = max(0.1, end - time.monotonic()) / (len(addresses) - number)
                self._connect(server, address, left)
            except OSError:
                if number + 1 == len(addresses):
                    raise
            else:
                return

    def _refusal(
        self, server: _Server, problem: Exception, operation: str, path: str
    ) -> UnavailableError | ResourceExhaustedError:
        if isinstance(problem, OSError) and problem.errno in _NO_DESCRIPTOR:
            return ResourceExhaustedError(
                f"{operation} {path!r}: {server} cannot be asked: {problem}; close files, or raise"
                f" the limit (ulimit -n) (plugin {self._plugin})",
                plugin=self._plugin,
                path=path,
                operation=operation,
            )
        return UnavailableError(
            f"{operation} {path!r}: {self._problem(server, problem)} (plugin {self._plugin})",
            plugin=self._plugin,
            path=path,
            operation=operation,
        )

    def _connect(self, server: _Server, address: _Address, timeout: float) -> None:
        begun = time.monotonic()
        family, place = address
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(place)
            if self._assumed_scheme == "https" and not server.has_scheme:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE  # the plugin verifies; this asks for TLS alone
                connection.settimeout(max(timeout / 4, timeout - (time.monotonic() - begun)))
                host, _ = server.address()
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


def _resolve(host: str, port: int) -> list[_Address]:
    """Look a host's name up, and return its addresses.

    Raises:
        OSError: It has no address, or none was told in time.
    """
    told: list[list[_Address] | OSError | UnicodeError] = []

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            told.append([(family, place) for family, *_, place in found])
        except (OSError, UnicodeError) as error:
            told.append(error)

    thread = threading.Thread(target=look_up, name="modular_tf-resolve", daemon=True)
    start_thread(thread)
    thread.join(_TIMEOUT_SECONDS)
    if not told:
        raise TimeoutError(f"no answer to the name {host!r} in {_TIMEOUT_SECONDS:.0f} seconds")
    if not isinstance(told[0], list):
        raise OSError(*told[0].args) from told[0]
    return told[0]


def _is_behind_proxy(scheme: str, host: str, environment: Mapping[str, str]) -> bool:
    said = {name.lower(): value for name, value in environment.items() if value}
    # As urllib reads them, a name in small letters counts more.
    said.update({name: value for name, value in environment.items() if name.islower()})
    if not any(said.get(name) for name in (f"{scheme}_proxy", "all_proxy")):
        return False
    # Heavy, and rarely needed; it has no types.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # noqa: PLC0415

    return not proxy_bypass_environment(host, {"no": said.get("no_proxy", "")})
