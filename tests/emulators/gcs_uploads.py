"""The two ways to upload to Google Cloud Storage that need more than one body: parts and sessions.

`multipart` puts the metadata and the content into one request; `resumable` spreads the content
over several requests of one session.
"""

from __future__ import annotations

import json
import re
import threading
from typing import NamedTuple

_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)\Z")


class Multipart(NamedTuple):
    """An object resource and the content that came with it."""

    metadata: dict[str, object]
    content: bytes


def parse_multipart(content_type: str, body: bytes) -> Multipart:
    """Split a `multipart/related` body into its two parts.

    Raises:
        ValueError: The content type names no boundary, or there are not two parts.
    """
    boundary = re.search(r"""boundary=['"]?([^'";]+)""", content_type)
    if boundary is None:
        raise ValueError(f"no boundary in {content_type!r}")
    delimiter = b"--" + boundary[1].encode()
    _, metadata, content, _ = (b"\r\n" + body).split(b"\r\n" + delimiter)
    return Multipart(json.loads(_without_headers(metadata)), _without_headers(content))


def _without_headers(part: bytes) -> bytes:
    return part.split(b"\r\n\r\n", 1)[1]


class Upload:
    """One resumable upload: what has arrived so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.content = bytearray()

    def take(self, content_range: str, body: bytes) -> bool:
        """Add a piece; True when it was the last one.

        A piece that overlaps what is there already replaces it, as after a lost answer. Without a
        range the body is the whole object.
        """
        found = _CONTENT_RANGE.match(content_range)
        if found is None:
            self.content[:] = body
            return True
        first, _, total = found.groups()
        if first is not None:
            self.content[int(first) :] = body
        return total != "*" and len(self.content) == int(total)

    def progress(self) -> dict[str, str]:
        """Return the header that says which bytes have arrived; absent when none have."""
        return {"Range": f"bytes=0-{len(self.content) - 1}"} if self.content else {}


class Uploads:
    """All resumable uploads of a server, by session. [any thread]"""

    def __init__(self) -> None:
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()

    def begin(self, name: str) -> str:
        """Begin an upload to the object `name` and return its session."""
        with self._lock:
            session = f"session-{len(self._uploads) + 1}"
            self._uploads[session] = Upload(name)
        return session

    def get(self, session: str) -> Upload | None:
        """Return the upload of a session, or None."""
        return self._uploads.get(session)
