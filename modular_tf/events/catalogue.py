"""Every event that the package logs (`catalogue.toml`), for the documents and the tests."""

from __future__ import annotations

import sys
from importlib import resources
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["EVENTS", "KnownEvent"]


class KnownEvent(NamedTuple):
    """One kind of event.

    Attributes:
        name: Its dotted name.
        levels: The levels that it may have.
        keys: Its keys, which are always all there.
        meaning: What happened, in one sentence.
    """

    name: str
    levels: tuple[str, ...]
    keys: tuple[str, ...]
    meaning: str


_TABLE = resources.files("modular_tf.events").joinpath("catalogue.toml")
EVENTS = tuple(
    KnownEvent(name, tuple(levels.split()), tuple(keys.split()), meaning)
    for name, (levels, keys, meaning) in tomllib.loads(_TABLE.read_text("utf-8")).items()
)
