"""What the emulator of Alibaba's object store keeps: objects, and uploads that are not finished."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone


@dataclass(frozen=True)
class Item:
    """One object; it is replaced, never changed."""

    content: bytes
    changed: float = field(default_factory=time.time)  # s since 1970

    @property
    def moment(self) -> str:
        """When it was stored, in ISO 8601."""
        return datetime.fromtimestamp(self.changed, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class Bucket:
    """The objects of one bucket by name. [any thread]"""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Item | None:
        """Return an object, or None."""
        return self._items.get(name)

    def put(self, name: str, content: bytes) -> None:
        """Store an object."""
        with self._lock:
            self._items[name] = Item(content)

    def delete(self, name: str) -> None:
        """Remove an object, if it is there."""
        with self._lock:
            self._items.pop(name, None)

    def list(self, prefix: str, delimiter: str) -> tuple[list[tuple[str, Item]], list[str]]:
        """Return the objects below a prefix, and the prefixes that the delimiter folds."""
        with self._lock:
            stored = sorted(self._items.items())
        items, folders = [], set()
        for name, item in stored:
            if not name.startswith(prefix):
                continue
            head, found, _ = name[len(prefix) :].partition(delimiter or "\0")
            if found:
                folders.add(prefix + head + found)
            else:
                items.append((name, item))
        return items, sorted(folders)

    def begin_upload(self) -> str:
        """Begin a multipart upload and return its session."""
        with self._lock:
            session = f"upload-{len(self._uploads) + 1}"
            self._uploads[session] = {}
        return session

    def parts(self, session: str) -> dict[int, bytes] | None:
        """Return an upload's parts by number, to read and to add to; None for an unknown one."""
        return self._uploads.get(session)
