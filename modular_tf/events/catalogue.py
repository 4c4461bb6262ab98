"""Every event that the package logs (`catalogue.toml`), for the documents and the tests."""

from __future__ import annotations

from typing import NamedTuple

from modular_tf.tables import read_table

__all__ = ["EVENTS", "KnownEvent"]


class KnownEvent(NamedTuple):
    """One kind of event."""

    name: str  # dotted
    levels: tuple[str, ...]  # that it may have
    keys: tuple[str, ...]  # which are always all there
    meaning: str  # what happened, in one sentence


EVENTS = tuple(
    KnownEvent(name, tuple(levels.split()), tuple(keys.split()), meaning)
    for name, (levels, keys, meaning) in read_table("events/catalogue.toml").items()
)
