"""A database with one table: a key and a value of JSON each."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.service.storage.database import Database, Table, oldest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.storage.private_directory import PrivateDirectory


class Pairs(Database):
    """Such a database; what is no JSON is none."""

    make_room = (
        oldest("pair"),
        "DELETE FROM host WHERE id NOT IN (SELECT host FROM pair)",
    )

    def __init__(self, directory: PrivateDirectory, name: str, host: str = "host") -> None:
        self.pairs = Table("pair", "key", "value")
        super().__init__(directory, name, self.pairs, host=host)

    def put(self, key: str, value: Any) -> None:
        """Set the value of a key."""
        self.pairs.put(key, json.dumps(value))

    def drop(self, key: str) -> None:
        """Remove the value of a key."""
        self.pairs.drop(key)

    def get(self, key: str) -> Any | None:
        """Return the value of a key, None if there is none."""
        (text,) = self.pairs.get(key) or (None,)
        with suppress(ValueError, TypeError, RecursionError):
            return json.loads(text)
        return None

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield every key with its value."""
        for key in self.pairs.all():
            if (value := self.get(key)) is not None:
                yield key, value
