"""An HTTP/1.1 server in one thread, for emulators that many clients ask at once.

What such a server answers goes through `ControlledService`: it counts the requests by kind, notes
their user agents, waits before each answer, and serves the paths below `/-/` for the tests:

    GET /-/requests      {"requests": {kind: count, …}, "agents": […]} since they were cleared
    DELETE /-/requests   clear them
    PUT /-/settings      a JSON object with new values of some settings
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL = "/-/"
EMPTY: Mapping[str, str] = {}
_PIECE = 1 << 18  # a transport copies what the socket does not take at once
_BURST_S = 0.002  # of what the line takes: shorter sleeps of an event loop are not exact
_LONGEST_HEAD = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


@dataclass(frozen=True)
class Request:
    """One request, read to its end.

    Attributes:
        method: `GET`, `PUT`, ….
        path: The path as it was sent, still percent-encoded.
        query: The query's values, decoded; a key without a value has "".
        headers: By lower-case name.
        body: The whole body, with chunks joined.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """The decoded path without its first slash."""
        return unquote(self.path).removeprefix("/")


@dataclass(frozen=True)
class Answer:
    """One answer; `Content-Length` is added when it is sent."""

    status: int = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


def requested_range(header: str, length: int) -> tuple[int, int] | None:
    """Return where the bytes that a `Range` header asks for begin and end (RFC 9110 §14).

    None stands for the whole resource: a header that is malformed, or asks for several ranges,
    counts as absent, as the RFC allows. A range that begins behind the end has nothing in it.
    """
    match = _RANGE.match(header)
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return length - min(int(last), length), length
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, length) if last else length


def content_answer(request: Request, content: bytes, headers: Mapping[str, str] = EMPTY) -> Answer:
    """Answer with `content`, or with the part of it that the request's `Range` names."""
    part = requested_range(request.headers.get("range", ""), length := len(content))
    if part is None:
        return Answer(body=content, headers={**headers, "Accept-Ranges": "bytes"})
    start, end = part
    if start >= end:
        size = {"Content-Range": f"bytes */{length}"}
        return Answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=size)
    placed = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{length}"}
    return Answer(HTTPStatus.PARTIAL_CONTENT, content[start:end], headers=placed)


@dataclass(frozen=True)
class Settings:
    """What can be changed while an emulator runs.

    Attributes:
        delay_s: Seconds between a request and its answer.
        held: The kind of requests that are kept waiting as long as this is set.
        bytes_per_s: Of the bodies of all answers together; 0 for no limit.
    """

    delay_s: float = 0.0
    held: str = ""
    bytes_per_s: float = 0.0


_Settings = TypeVar("_Settings", bound=Settings)


class ControlledService(Generic[_Settings]):
    """Counts requests by kind, keeps the settings, and answers below `/-/`."""

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self._requests: Counter[str] = Counter()
        self._agents: set[str] = set()
        self._line_is_free_at = 0.0
        self._changed = asyncio.Event()

    def kind(self, request: Request) -> str:
        """Return what a request is counted as."""
        return request.method + (" range" if "range" in request.headers else "")

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request that is not for `/-/`."""
        raise NotImplementedError

    async def serve(self, request: Request) -> Answer:
        """Count a request, wait, and return its answer."""
        if request.path.startswith(CONTROL):
            return self._control(request)
        kind = self.kind(request)
        self._requests[kind] += 1
        self._agents.add(request.headers.get("user-agent", ""))
        await asyncio.sleep(self.settings.delay_s)
        while self.settings.held == kind:
            await self._changed.wait()
        return self.answer(request)

    async def take_line(self, count: int) -> None:
        """Wait until so many bytes may be sent."""
        if rate := self.settings.bytes_per_s:
            now = asyncio.get_running_loop().time()
            # A sleep that took too long is made up for.
            self._line_is_free_at = max(self._line_is_free_at, now - _BURST_S) + count / rate
            if self._line_is_free_at > now + _BURST_S:
                await asyncio.sleep(self._line_is_free_at - now)

    def _control(self, request: Request) -> Answer:
        action = request.method, request.path.removeprefix(CONTROL)
        if action == ("PUT", "settings"):
            self.settings = replace(self.settings, **json.loads(request.body))
            self._changed.set()
            self._changed = asyncio.Event()
        elif action == ("DELETE", "requests"):
            self._requests.clear()
            self._agents.clear()
        elif action != ("GET", "requests"):
            return Answer(HTTPStatus.NOT_FOUND)
        found = {
            "requests": dict(sorted(self._requests.items())),
            "agents": sorted(self._agents),
            "settings": asdict(self.settings),
        }
        return Answer(body=json.dumps(found).encode(), content_type="application/json")


async def read_head(reader: asyncio.StreamReader) -> tuple[bytes, dict[str, str]] | None:
    """Return the first line and the headers, by lower-case name; None at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, _, rest = head[:-4].partition(b"\r\n")
    headers = {}
    for line in filter(None, rest.decode("latin-1").split("\r\n")):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return first, headers


async def read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """Return a whole body, with chunks joined."""
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():
        pass  # trailers
    return bytes(body)


async def read_message(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[bytes, dict[str, str], bytes] | None:
    """Return the first line, the headers and the body of a client's message; None at the end."""
    found = await read_head(reader)
    if found is None:
        return None
    first, headers = found
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return first, headers, await read_body(reader, headers)


def request_of(first: bytes, headers: Mapping[str, str], body: bytes) -> Request:
    """Return what a client's message asks for."""
    method, target, _version = first.decode("latin-1").split(" ")
    url = urlsplit(target)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    return Request(method, url.path, query, headers, body)


async def write_answer(
    writer: asyncio.StreamWriter,
    request: Request,
    answer: Answer,
    take_line: Callable[[int], Awaitable[None]] | None = None,
) -> None:
    """Send an answer; for HEAD, without its body.

    Args:
        writer: Of the connection.
        request: What is answered.
        answer: The answer.
        take_line: Waits until so many bytes of the body may be sent.
    """
    headers = {
        "Date": formatdate(usegmt=True),
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {int(answer.status)} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    body = memoryview(b"" if request.method == "HEAD" else answer.body)
    for start in range(0, len(body), _PIECE):
        piece = body[start : start + _PIECE]
        if take_line is not None:
            await take_line(len(piece))
        writer.write(piece)
        await writer.drain()
    await writer.drain()


Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def listen(connection: Connection, port: int = 0) -> None:
    """Print `listening on URL` for what started this process, then serve for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):  # a client that hung up
                await connection(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_LONGEST_HEAD, backlog=512)
    sys.stdout.write(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def run(service: ControlledService[_Settings], port: int = 0) -> None:
    """Serve until the process is ended."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while found := await read_message(reader, writer):
            request = request_of(*found)
            await write_answer(writer, request, await service.serve(request), service.take_line)

    asyncio.run(listen(converse, port))
