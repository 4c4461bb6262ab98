"""What every emulator shares: an HTTP/1.1 server on a free loopback port, requests and answers."""

from __future__ import annotations

import http.server
import sys
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.emulators.byte_range import UnsatisfiableRange, requested_range

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTY: Mapping[str, str] = {}


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


def content_answer(request: Request, content: bytes, headers: Mapping[str, str] = EMPTY) -> Answer:
    """Answer with `content`, or with the part of it that the request's `Range` names."""
    try:
        part = requested_range(request.headers.get("range"), len(content))
    except UnsatisfiableRange:
        size = {"Content-Range": f"bytes */{len(content)}"}
        return Answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=size)
    if part is None:
        return Answer(body=content, headers={**headers, "Accept-Ranges": "bytes"})
    placed = {**headers, "Content-Range": part.content_range}
    return Answer(HTTPStatus.PARTIAL_CONTENT, content[part.first : part.last + 1], headers=placed)


class RequestHandler(http.server.BaseHTTPRequestHandler):
    """Reads requests and sends answers; a subclass says what the answer is."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize: ClassVar[int] = -1  # an answer leaves in one piece, not header by header

    def answer(self, request: Request) -> Answer:
        """Return the answer to one request. [any thread]"""
        return Answer(HTTPStatus.NOT_IMPLEMENTED, request.path.encode())

    def handle_expect_100(self) -> bool:
        """Send `100 Continue` at once: clients hold their body back until they see it."""
        proceed = super().handle_expect_100()
        self.wfile.flush()
        return proceed

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the parent's name)
        """Write the line to stderr, without the date that the parent puts before it."""
        sys.stderr.write(format % args + "\n")

    def _serve(self) -> None:
        self._send(self.answer(self._request()))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815

    def _request(self) -> Request:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        return Request(self.command, url.path, query, headers, self._body(headers))

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        return self.rfile.read(int(headers.get("content-length", 0)))

    def _chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return bytes(body)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


class LoopbackServer(http.server.ThreadingHTTPServer):
    """Serves on 127.0.0.1, on a port that the system chooses."""

    daemon_threads = True
    request_queue_size = 128  # with five, connections wait for seconds on a busy machine

    def __init__(self, handler: type[RequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent about clients that hang up; report everything else."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def announce_and_serve(self) -> None:
        """Print `listening on URL` for whoever started this process, then serve for ever."""
        sys.stdout.write(f"listening on http://127.0.0.1:{self.server_address[1]}\n")
        sys.stdout.flush()
        self.serve_forever()
