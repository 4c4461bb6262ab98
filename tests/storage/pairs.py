"""A database with one table: a key and a value of JSON each."""

from __future__ import annotations

import json
from contextlib import suppress

from modular_tf.service.storage.database import Database, Table, oldest


class Pairs(Database):
    make_room = (
        oldest("pair"),
        "DELETE FROM host WHERE id NOT IN (SELECT host FROM pair)",
    )

    def __init__(self, directory, name, host="host"):
        self.pairs = Table("pair", "key", "value")
        super().__init__(directory, name, self.pairs, host=host)

    def put(self, key, value):
        self.pairs.put(key, json.dumps(value))

    def drop(self, key):
        self.pairs.drop(key)

    def get(self, key):
        with suppress(TypeError, ValueError):  # of what is no JSON, or not there
            return json.loads(*self.pairs.get(key))
        return None

    def contents(self):
        found = {key: self.get(key) for key in self.pairs.all()}
        return {key: value for key, value in found.items() if value is not None}
