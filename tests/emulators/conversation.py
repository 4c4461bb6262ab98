"""A plain HTTP client for the emulators' own tests: it never raises for a status."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_HEADERS: Mapping[str, str] = {}


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


def ask(
    method: str,
    url: str,
    body: bytes | Iterable[bytes] | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> Reply:
    """Send one request; a body given in pieces goes out in chunks."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    try:
        chunked = body is not None and not isinstance(body, bytes)
        target = f"{parts.path or '/'}?{parts.query}"
        connection.request(method, target, body, dict(headers), encode_chunked=chunked)
        response = connection.getresponse()
        return Reply(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()
