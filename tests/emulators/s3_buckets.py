"""What an S3 keeps: buckets of objects, uploads in parts, and listings page by page."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_BEHIND_ALL = "\U0010ffff"


@dataclass(frozen=True)
class StoredObject:
    """An object as it was stored; a change makes a new one.

    Attributes:
        content: Its bytes.
        etag: With the quotes that belong to it.
        changed: When it was stored.
    """

    content: bytes
    etag: str
    changed: datetime

    @classmethod
    def made_of(cls, content: bytes) -> StoredObject:
        """Return an object that is stored now."""
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return cls(content, f'"{digest}"', datetime.now(timezone.utc))


@dataclass(frozen=True)
class Page:
    """A part of a listing.

    Attributes:
        keys: The objects in it, in order.
        folders: The common prefixes in it, in order.
        after: What the next page comes after; "" for the last page.
    """

    keys: list[str]
    folders: list[str]
    after: str

    def with_key(self, key: str) -> Page:
        """Return the page with one more object, the last one so far."""
        self.keys.append(key)
        return replace(self, after=key)

    def with_folder(self, folder: str) -> Page:
        """Return the page with one more common prefix, the last one so far."""
        self.folders.append(folder)
        return replace(self, after=folder)


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
        self._keys: list[str] | None = None  # sorted, made at need
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

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""
        if self._objects.pop(key, None) is not None:
            self._keys = None

    def begin_upload(self, key: str) -> str:
        """Return the id of a new upload in parts."""
        upload_id = f"upload-{next(self._numbers)}"
        self.uploads[upload_id] = Upload(key)
        return upload_id

    def end_upload(self, upload_id: str, numbers: Sequence[int]) -> StoredObject:
        """Store the object that the parts with these numbers make."""
        upload = self.uploads.pop(upload_id)
        return self.put(upload.key, b"".join(upload.parts[n].content for n in numbers))

    def page(self, prefix: str, delimiter: str, after: str, room: int) -> Page:
        """Return the next `room` keys and folders below `prefix` that come after `after`."""
        if self._keys is None:
            self._keys = sorted(self._objects)
        found = Page([], [], "")
        position = self._position(prefix, delimiter, after)
        while position < len(self._keys) and self._keys[position].startswith(prefix):
            if len(found.keys) + len(found.folders) == room:
                return found
            key = self._keys[position]
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            if end < 0:
                found = found.with_key(key)
                position += 1
            else:
                found = found.with_folder(key[: end + len(delimiter)])
                position = bisect_right(self._keys, found.after + _BEHIND_ALL)
        return replace(found, after="")

    def _position(self, prefix: str, delimiter: str, after: str) -> int:
        keys = self._keys or []
        if after < prefix:
            return bisect_left(keys, prefix)
        in_folder = delimiter and after.endswith(delimiter) and after != prefix
        return bisect_right(keys, after + _BEHIND_ALL if in_folder else after)
