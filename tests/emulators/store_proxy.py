"""A proxy between a client and a store, which counts requests and makes them fail if told.

Usage: python -m tests.emulators.store_proxy UPSTREAM

UPSTREAM is the URL of the store, without a path. `http_server` says how requests are counted and
how settings are changed, `faults` what can be set.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tests.emulators.faults import NO_FAULT, Fault, FaultDraw, FaultSettings
from tests.emulators.http_server import (
    CONTROL,
    Answer,
    ControlledService,
    Request,
    listen,
    read_body,
    read_head,
    read_message,
    request_of,
    write_answer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_DOCUMENTS = ("application/xml", "application/json")
_PIECES = 3
_END_WITH_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 seconds
_OF_A_CONNECTION = {"transfer-encoding", "content-length", "connection", "expect", "keep-alive"}


class Message(NamedTuple):
    """A request or an answer as it is passed on, its chunks joined and its length left out."""

    first_line: bytes
    headers: Mapping[str, str]
    body: bytes

    def is_document(self) -> bool:
        """Return whether the body is a listing or something else to be parsed, and no object."""
        return self.headers.get("content-type", "").startswith(_DOCUMENTS)

    def head(self, length: int) -> bytes:
        """Return what goes before a body of so many bytes."""
        lines = [f"{name}: {value}" for name, value in self.headers.items()]
        lines.append(f"content-length: {length}")
        return self.first_line + b"\r\n" + "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def _message(first_line: bytes, headers: Mapping[str, str], body: bytes) -> Message:
    kept = {name: value for name, value in headers.items() if name not in _OF_A_CONNECTION}
    return Message(first_line, kept, body)


class Upstream:
    """A connection to the store, opened for the first request."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def answer(self, request: Message) -> tuple[Message, int]:
        """Return the answer, and the length that it tells, which for HEAD is not the body's."""
        for is_last in (False, True):
            reused = self._streams is not None
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self._address, limit=1 << 20)
            reader, writer = self._streams
            writer.write(request.head(len(request.body)) + request.body)
            await writer.drain()
            found = await read_head(reader)
            if found is not None:
                break
            self.close()  # the store had ended the connection that was kept
            if is_last or not reused:
                raise ConnectionResetError("the store ended the connection")
        assert found is not None
        first_line, headers = found
        status = int(first_line.split(b" ")[1])
        told = int(headers.get("content-length", 0))
        has_body = not request.first_line.startswith(b"HEAD ") and status not in {204, 304}
        body = await read_body(reader, headers) if has_body else b""
        if headers.get("connection", "").lower() == "close":
            self.close()
        return _message(first_line, headers, body), len(body) if has_body else told

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


class StoreProxy(ControlledService[FaultSettings]):
    """Passes requests on, and answers back."""

    def __init__(self, upstream: str) -> None:
        super().__init__(FaultSettings())
        url = urlsplit(upstream)
        self._address = url.hostname or "", url.port or 80
        self._draw = FaultDraw()

    def kind(self, request: Request) -> str:
        """Return the method, with what tells the operations of stores apart."""
        words = [request.method]
        if {"range", "x-ms-range"} & set(request.headers):
            words.append("range")
        words += [request.query[name] for name in ("comp", "uploadType") if name in request.query]
        if {"prefix", "delimiter"} & set(request.query) and "comp" not in request.query:
            words.append("list")
        return " ".join(words)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a client."""
        upstream = Upstream(*self._address)
        try:
            while found := await read_message(reader, writer):
                await self._exchange(writer, upstream, Message(*found))
        finally:
            upstream.close()

    async def _exchange(
        self, writer: asyncio.StreamWriter, upstream: Upstream, message: Message
    ) -> None:
        request = request_of(*message)
        answer = await self.serve(request)
        if request.path.startswith(CONTROL):
            await write_answer(writer, request, answer)
            return
        is_met = self.settings.kind in {"", self.kind(request)}
        fault = self._draw.next(request.path, self.settings) if is_met else NO_FAULT
        if fault.name in {"reset", "error"} and not fault.is_done:
            await _send(writer, fault, request, Message(b"", {}, b""), 0)
            return
        passed_on = _message(message.first_line, message.headers, message.body)
        await _send(writer, fault, request, *await upstream.answer(passed_on))

    def answer(self, request: Request) -> Answer:
        """Return nothing: the store's answer is passed on as it is."""
        return Answer()


async def _send(
    writer: asyncio.StreamWriter, fault: Fault, request: Request, answer: Message, told: int
) -> None:
    """Send an answer, or what a fault makes of it."""
    cut = int(len(answer.body) * fault.part)
    if fault.name == "reset" or (fault.name in {"break", "truncate"} and not answer.body):
        _end_with_reset(writer)
    elif fault.name == "error":
        told_so = b"<Error><Code>InternalError</Code><Message>a fault</Message></Error>"
        error = Answer(fault.status, told_so, "application/xml")
        await write_answer(writer, request, error)
    elif fault.name == "cut" and answer.is_document():
        writer.write(answer.head(cut if answer.body else told) + answer.body[:cut])
    elif fault.name in {"break", "truncate"}:
        writer.write(answer.head(told) + answer.body[:cut])
        await writer.drain()
        if fault.name == "break":
            _end_with_reset(writer)
        raise ConnectionResetError("a fault ends the connection")
    else:
        writer.write(answer.head(told))
        step = max(1, len(answer.body) // _PIECES + 1) if fault.name == "slow" else 1 << 18
        for start in range(0, len(answer.body), step):
            await asyncio.sleep(fault.pause_s)
            writer.write(answer.body[start : start + step])
            await writer.drain()
    await writer.drain()


def _end_with_reset(writer: asyncio.StreamWriter) -> None:
    """Have the client see a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _END_WITH_RESET)
    writer.transport.abort()
    raise ConnectionResetError("a fault resets the connection")


def main() -> None:
    """Serve between clients and the store that the command line names."""
    asyncio.run(listen(StoreProxy(sys.argv[1]).converse))


if __name__ == "__main__":
    main()
