"""A proxy in front of an emulator that notes the requests which pass through it.

Usage: python -m tests.emulators.counting_proxy PORT NOTES

It listens on a port of its own and passes everything on to the loopback's PORT. Each request adds a
line to the file NOTES: the method, with "range" for a part of what is there.
"""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD = re.compile(
    rb"(?:^|(?<=\n))(GET|HEAD|PUT|POST|DELETE) \S+ HTTP/1\.1\r\n(.*?)\r\n\r\n", re.DOTALL
)
_RANGE = re.compile(rb"(?im)^(x-ms-)?range:")


class _Proxy:
    def __init__(self, port: int, notes: Path) -> None:
        self._port = port
        self._notes = notes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(
            self._pass_on(reader, to_writer, self._note),
            self._pass_on(to_reader, writer, lambda _: None),
        )

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        note: Callable[[bytes], None],
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                note(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    def _note(self, data: bytes) -> None:
        """Note the requests in a piece of what a client sends; clients send a head in one piece."""
        with self._notes.open("a") as notes:
            for method, fields in _HEAD.findall(data):
                kind = " range" if _RANGE.search(fields) else ""
                notes.write(f"{method.decode()}{kind}\n")


async def main() -> None:
    """Serve until the process is ended."""
    proxy = _Proxy(int(sys.argv[1]), Path(sys.argv[2]))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
