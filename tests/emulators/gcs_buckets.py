"""The buckets and objects of the Google Cloud Storage emulator, and their JSON descriptions."""

from __future__ import annotations

import base64
import hashlib
import itertools
import threading
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Generations look like microseconds since 1970 and only ever grow.
_generations = itertools.count(1_700_000_000_000_000)


@dataclass(frozen=True)
class StoredObject:
    """One generation of an object: it is replaced, never changed."""

    bucket: str
    name: str
    content: bytes
    generation: int = field(default_factory=lambda: next(_generations))
    created: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def description(self) -> dict[str, str]:
        """Return the object resource of the JSON API.

        It has no `crc32c`: clients compare checksums only where both sides have one, and the
        standard library cannot compute it at a useful speed. The MD5 is there.
        """
        created = self.created.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        digest = hashlib.md5(self.content, usedforsecurity=False).digest()
        return {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "bucket": self.bucket,
            "name": self.name,
            "size": str(len(self.content)),
            "contentType": "application/octet-stream",
            "generation": str(self.generation),
            "metageneration": "1",
            "timeCreated": created,
            "updated": created,
            "timeStorageClassUpdated": created,
            "storageClass": "STANDARD",
            "md5Hash": base64.b64encode(digest).decode(),
        }


@dataclass(frozen=True)
class Listing:
    """One answer to "what is below this prefix"."""

    objects: tuple[StoredObject, ...]
    prefixes: tuple[str, ...]


class Buckets:
    """All buckets of one server. [any thread]"""

    def __init__(self, names: Iterable[str]) -> None:
        self._objects: dict[str, dict[str, StoredObject]] = {name: {} for name in names}
        self._lock = threading.Lock()

    def __contains__(self, bucket: str) -> bool:
        return bucket in self._objects

    def get(self, bucket: str, name: str) -> StoredObject | None:
        """Return the object, or None where the bucket or the object is missing."""
        return self._objects.get(bucket, {}).get(name)

    def put(self, bucket: str, name: str, content: bytes) -> StoredObject:
        """Store a new generation of an object.

        Raises:
            KeyError: There is no such bucket.
        """
        stored = StoredObject(bucket, name, content)
        with self._lock:
            self._objects[bucket][name] = stored
        return stored

    def delete(self, bucket: str, name: str) -> bool:
        """Remove an object; False where there was none."""
        with self._lock:
            return self._objects.get(bucket, {}).pop(name, None) is not None

    def list(self, bucket: str, prefix: str, delimiter: str, *, with_folders: bool) -> Listing:
        """List objects below `prefix`, and fold what has `delimiter` behind it into prefixes.

        Args:
            bucket: Which bucket; it must exist.
            prefix: What the names begin with.
            delimiter: Where names are folded; "" folds nothing.
            with_folders: List an object whose name ends with its only delimiter as an object too.
        """
        with self._lock:
            stored = sorted(self._objects[bucket].items())
        objects, prefixes = [], set()
        for name, entry in stored:
            if not name.startswith(prefix):
                continue
            head, found, tail = name[len(prefix) :].partition(delimiter or "\0")
            if found:
                prefixes.add(prefix + head + found)
            if not found or (with_folders and not tail):
                objects.append(entry)
        return Listing(tuple(objects), tuple(sorted(prefixes)))
