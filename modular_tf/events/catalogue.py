"""Every event that the package logs (`catalogue.toml`), for the documents and the tests."""

from __future__ import annotations

from typing import NamedTuple

from modular_tf.tables import read_table

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


EVENTS = tuple(
    KnownEvent(name, tuple(levels.split()), tuple(keys.split()), meaning)
    for name, (levels, keys, meaning) in read_table("events/catalogue.toml").items()
)
