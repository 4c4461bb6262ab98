"""A way to a server on which what is sent to it flows slowly, and requests are counted.

`python -m tests.emulators.throttle PORT BYTES_PER_SECOND` forwards to PORT of this machine. GET
/__requests answers how many requests of each method came before, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter

_PIECE = 1 << 14
_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) \S+ HTTP/1\.1\r\n")


class Throttle:
    """One way to a server."""

    def __init__(self, port: int, rate: int) -> None:
        self._port = port
        self._rate = rate
        self._requests: Counter[str] = Counter()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        answers, requests = await asyncio.open_connection("127.0.0.1", self._port)
        to_client = asyncio.create_task(_pump(answers, writer))
        try:
            while data := await reader.read(_PIECE):
                if data.startswith(b"GET /__requests"):
                    await self._tell(writer)
                    continue
                self._requests.update(found.decode() for found in _REQUEST.findall(data))
                requests.write(data)
                await requests.drain()
                await asyncio.sleep(len(data) / self._rate)
        except ConnectionError:
            pass
        finally:
            requests.close()
            await asyncio.wait([to_client])

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(self._requests).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until the process ends."""
    throttle = Throttle(int(sys.argv[1]), int(sys.argv[2]))
    server = await asyncio.start_server(throttle.forward, "127.0.0.1", 0, limit=_PIECE)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"listening on http://127.0.0.1:{port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
