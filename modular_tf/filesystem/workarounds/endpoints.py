"""A check that a server accepts connections, made before the plugin starts its own long retries."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import ModularTFError, ResourceExhaustedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TIMEOUT_S = 4.0  # a quarter more where resolving the name took all of it
_GOOD_FOR_S = 5.0
# After a check that took long; a server that refuses at once is checked again at each call.
_BAD_FOR_S, _LONG_S = 3.0, 0.5
_MAX_SERVERS = 1024  # of http each host of a URI is one
_SUSPICIOUS_S = 3.0  # a NOT_FOUND that took so long probably came from retries of a dead server
_PORTS = {"http": 80, "https": 443}


class Server(NamedTuple):
    """The server of a plugin, and the setting that names it.

    `variable` names it; None where the URI or the plugin does. `assumes_tls`: the variable has no
    scheme, so the plugin speaks TLS. `is_default`: no setting names the server, so that only its
    name is resolved: without an address the machine has no network.
    """

    url: str
    variable: str | None = None
    assumes_tls: bool = False
    is_default: bool = False

    def address(self) -> tuple[str, int]:
        """Return host and port; `ValueError` for a URL that has none."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)

    def __str__(self) -> str:
        try:
            return ":".join(map(str, self.address()))
        except ValueError:
            return self.url.partition("://")[2].partition("/")[0].rpartition("@")[2]


def named_server(
    environment: Mapping[str, str], *variables: str, assumes_tls: bool = False
) -> Server | None:
    """Return the server that the first variable with a value names, None for no such variable."""
    for variable in variables:
        if value := environment.get(variable):
            if "://" in value:
                return Server(value, variable)
            return Server(f"https://{value}", variable, assumes_tls)
    return None


class _Check:
    """The last check of one server: its result, and the monotonic time until which that counts."""

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.until = 0.0
        self.problem: Exception | None = None

    def is_fresh(self) -> bool:
        return time.monotonic() < self.until


class Endpoints:
    """Opens a TCP connection to a plugin's servers every few seconds. [any thread]

    A server behind a proxy is not checked: only the proxy can reach it. `server_of` returns the
    server for a URI, None where it is not known; `environment` are the variables that the plugin
    sees.
    """

    def __init__(
        self,
        server_of: Callable[[str], Server | None],
        plugin: str,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.server_of = server_of
        self._plugin = plugin
        self._environment = environment
        self._checks: dict[Server, _Check] = {}

    def require(self, operation: str, uri: str) -> None:
        """Return if the server of a URI accepted a connection recently, or is not known.

        `UnavailableError` if it accepts none, `ResourceExhaustedError` without a free descriptor.
        """
        server = self.server_of(uri)
        if server is None:
            return
        check = self._check_of(server)
        if check.problem is None and check.is_fresh():
            return
        with check.lock:  # of this server alone: a dead one delays no call to another
            if not check.is_fresh():
                self._connect_now(server, check)
            problem = check.problem
        if problem is None:
            return
        kind: type[ModularTFError] = UnavailableError
        explanation = _explanation(server, problem)
        if isinstance(problem, OSError) and problem.errno in {errno.EMFILE, errno.ENFILE}:
            kind = ResourceExhaustedError
            explanation = (
                f"{server} cannot be checked: {problem}; close files, or raise the limit"
                " (ulimit -n)"
            )
        explanation = f"{explanation} (plugin {self._plugin})"
        raise kind.of(operation, uri, explanation, plugin=self._plugin) from problem

    def suspect(self, code: Code, operation: str, uri: str, seconds: float) -> None:
        """Check a server anew after a failure that a dead one may cause, and raise if it is."""
        if code is Code.NOT_FOUND and seconds < _SUSPICIOUS_S:
            return
        server = self.server_of(uri)
        if server is not None:
            check = self._check_of(server)
            if check.problem is None:
                check.until = 0.0
            self.require(operation, uri)

    def _check_of(self, server: Server) -> _Check:
        check = self._checks.get(server)
        if check is None:
            if len(self._checks) >= _MAX_SERVERS:
                for other, seen in list(self._checks.items()):
                    if not seen.is_fresh():
                        self._checks.pop(other, None)
            check = self._checks.setdefault(server, _Check())
        return check

    def _connect_now(self, server: Server, check: _Check) -> None:
        """Check a server, and keep the result. Called with the lock of the check.

        Nothing bounds the time that the system takes to resolve a name, so a thread does all of it.
        """
        begin = time.monotonic()
        ended: list[Exception | None] = []
        resolved: list[bool] = []

        def reach() -> None:
            try:
                self._reach(server, begin + _TIMEOUT_S, resolved)
            except (OSError, ValueError) as error:
                ended.append(error.with_traceback(None))
            else:
                ended.append(None)

        thread = threading.Thread(target=reach, name="modular_tf-connect", daemon=True)
        try:
            start_thread(thread)
        except ResourceExhaustedError:
            reach()
        else:
            thread.join(_TIMEOUT_S * 5 / 4)
        now = time.monotonic()
        check.problem = (
            ended[0]
            if ended
            else TimeoutError(
                f"no answer{'' if resolved else ' to the name'} in {_TIMEOUT_S:.0f} seconds"
            )
        )
        if check.problem is None:
            check.until = now + _GOOD_FOR_S
        else:
            check.until = now + _BAD_FOR_S if now - begin > _LONG_S else 0.0

    def _reach(self, server: Server, end: float, resolved: list[bool]) -> None:
        """Connect to one address of a server; `OSError` or `ValueError` where none accepts.

        `resolved` gets an element when the name of the server has addresses.
        """
        parts = urlsplit(server.url)
        if _is_behind_proxy(parts.scheme, parts.netloc, self._environment):
            return
        host, port = server.address()
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        resolved.append(True)
        if server.is_default:
            return
        end = max(end, time.monotonic() + _TIMEOUT_S / 4)
        for number, (family, *_, address) in enumerate(addresses):
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                left = max(0.1, end - time.monotonic())
                connection.settimeout(left / (len(addresses) - number))
                try:
                    connection.connect(address)
                    if server.assumes_tls:
                        _shake_hands(connection, host)
                except OSError:
                    if number + 1 == len(addresses):
                        raise
                else:
                    return


def _shake_hands(connection: socket.socket, host: str) -> None:
    """Begin TLS on a connection, and end it; certificates are the plugin's to verify."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.wrap_socket(connection, server_hostname=host).close()


def _explanation(server: Server, error: Exception) -> str:
    """Return what is wrong with a server, and how to mend it."""
    if isinstance(error, ssl.SSLError) or (
        server.assumes_tls and isinstance(error, (TimeoutError, ConnectionResetError))
    ):
        return (
            f"{server.variable} names no scheme, so the plugin speaks TLS, which {server} does"
            f" not: {error}; begin it with http:// if the server has none"
        )
    if server.is_default:
        return (
            f"{server} has no address: {error}; connect this machine to a network, or set"
            f" {server.variable} to the server's URL"
        )
    remedy = f"; {server.variable} names it: correct it" if server.variable else "; check it"
    return f"{server} accepts no connection: {error}{remedy}, or start the server"


def _is_behind_proxy(scheme: str, host: str, environment: Mapping[str, str]) -> bool:
    settings = {name.lower(): value for name, value in environment.items() if value}
    # As in urllib, a name in lower case has precedence.
    settings.update({name: value for name, value in environment.items() if name.islower()})
    if not (settings.get(f"{scheme}_proxy") or settings.get("all_proxy")):
        return False
    # Heavy, and rarely needed; it has no types.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # noqa: PLC0415

    return not proxy_bypass_environment(host, {"no": settings.get("no_proxy", "")})
