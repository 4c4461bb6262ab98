"""A web server that answers all requests alike.

Usage: python -m tests.emulators.one_answer STATUS XML HEADERS

XML is the body, but for HEAD, whose answer has nothing of it; HEADERS is a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace

from tests.emulators.http_server import (
    Answer,
    listen,
    read_body,
    read_head,
    request_of,
    write_answer,
)


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer until the client hangs up.

    Without "100 Continue": Azure's SDK takes a refusal that arrives in one piece with it for XML.
    """
    while found := await read_head(reader):
        request = request_of(*found, await read_body(reader, found[1]))
        await write_answer(writer, request, to_head if request.method == "HEAD" else to_others)


if __name__ == "__main__":
    to_head = Answer(int(sys.argv[1]), headers=json.loads(sys.argv[3]))
    to_others = replace(to_head, body=sys.argv[2].encode(), content_type="application/xml")
    asyncio.run(listen(converse))
