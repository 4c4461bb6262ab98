"""What an object store keeps: buckets of objects, uploads in parts, and listings page by page."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_BEHIND_ALL = "\U0010ffff"
_generations = count(1_700_000_000_000_000)  # like microseconds since 1970


@dataclass(frozen=True)
class StoredObject:
    """An object as it was stored, with the MD5 of its bytes; a change makes a new one."""

    content: bytes
    digest: str
    changed: datetime
    generation: int

    @classmethod
    def made_of(cls, content: bytes) -> StoredObject:
        """Return an object that is stored now."""
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return cls(content, digest, datetime.now(timezone.utc), next(_generations))

    @property
    def etag(self) -> str:
        """Its entity tag, with the quotes that belong to it."""
        return f'"{self.digest}"'


@dataclass
class Page:
    """A part of a listing: keys and common prefixes in order, and what comes before the next."""

    keys: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    after: str = ""


@dataclass
class Upload:
    """An object that arrives in parts."""

    key: str
    parts: dict[int, StoredObject] = field(default_factory=dict)


class Bucket:
    """Objects by key."""

    def __init__(self) -> None:
        self.created = datetime.now(timezone.utc)
        self.uploads: dict[str, Upload] = {}
        self._objects: dict[str, StoredObject] = {}
        self._keys: list[str] | None = None  # sorted, made when it is needed
        self._numbers = count(1)

    def get(self, key: str) -> StoredObject | None:
        """Return an object, or None."""
        return self._objects.get(key)

    def put(self, key: str, content: bytes) -> StoredObject:
        """Store an object, in the place of an older one."""
        if key not in self._objects:
            self._keys = None
        stored = self._objects[key] = StoredObject.made_of(content)
        return stored

    def delete(self, key: str) -> bool:
        """Remove an object; return whether there was one."""
        if self._objects.pop(key, None) is None:
            return False
        self._keys = None
        return True

    def begin_upload(self, key: str) -> str:
        """Return the id of a new upload in parts."""
        upload_id = f"upload-{next(self._numbers)}"
        self.uploads[upload_id] = Upload(key)
        return upload_id

    def end_upload(self, upload_id: str, numbers: Iterable[int]) -> StoredObject:
        """Store the object that the parts with these numbers make."""
        upload = self.uploads.pop(upload_id)
        return self.put(upload.key, b"".join(upload.parts[n].content for n in numbers))

    def page(self, prefix: str, delimiter: str, after: str = "", room: int = 1 << 30) -> Page:
        """Return the next `room` keys and folders below `prefix` that come after `after`."""
        if self._keys is None:
            self._keys = sorted(self._objects)
        found = Page()
        position = self._position(prefix, delimiter, after)
        while position < len(self._keys) and self._keys[position].startswith(prefix):
            if len(found.keys) + len(found.folders) == room:
                return found
            key = self._keys[position]
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            if end < 0:
                found.keys.append(key)
                found.after = key
                position += 1
            else:
                found.after = key[: end + len(delimiter)]
                found.folders.append(found.after)
                position = bisect_right(self._keys, found.after + _BEHIND_ALL)
        found.after = ""
        return found

    def _position(self, prefix: str, delimiter: str, after: str) -> int:
        keys = self._keys or []
        if after < prefix:
            return bisect_left(keys, prefix)
        in_folder = delimiter and after.endswith(delimiter) and after != prefix
        return bisect_right(keys, after + _BEHIND_ALL if in_folder else after)
