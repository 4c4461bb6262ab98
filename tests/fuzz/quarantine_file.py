"""Target: the file of the quarantine; what is recalled has the shape of an entry."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.codec import decode, encode
from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation
from modular_tf.service.storage import quarantine as quarantine_memory
from modular_tf.service.storage.quarantine import Entry, QuarantineStore
from tests.fuzz.record_damage import GivenDirectory, damaged, forged

if TYPE_CHECKING:
    import random

HOST = HostFingerprint((("machine-id", "one"), ("machine", "x"), ("kernel", "6.1")))
NEXT_HOST = HostFingerprint((("machine-id", "one"), ("machine", "x"), ("kernel", "6.2")))
DIGESTS = ("0123456789abcdef" * 4, "f" * 64, "e" * 64)
TIME = 1_800_000_000.25


class Input(NamedTuple):
    """A file.

    Attributes:
        content: Its bytes.
        forged: Whether somebody meant it to be believed.
    """

    content: bytes
    forged: bool


def make(dice: random.Random) -> Input:
    """Return a file after accidents, or one that somebody forged."""
    if dice.random() < 0.3:
        return Input(forged(dice.choice(_bases()), "plugin", dice), forged=True)
    return Input(damaged(_bases(), dice), forged=False)


def check(given: Input) -> str:
    """List, name and recall all; what comes has the right shape."""
    memory = QuarantineStore(GivenDirectory(given.content), HOST)
    entries = memory.entries()
    found = [entry for digest in DIGESTS if (entry := memory.recall(digest)) is not None]
    named = [entry for name in ("plug0", "/p/1.so", DIGESTS[2][:7]) for entry in memory.named(name)]
    for entry in (*entries, *found, *named):
        assert decode(Entry, encode(entry)) == entry or entry.time != entry.time  # NaN
    assert all(dict(HOST.parts) == dict(entry.host) for entry in found)
    assert {entry.sha256 for entry in found} <= set(DIGESTS)
    assert len({entry.sha256 for entry in found}) == len(found)
    return f"{'forged' if given.forged else 'damaged'}, {len(found)} recalled"


@cache
def _bases() -> tuple[bytes, ...]:
    """Return the quarantine of one machine, before and after something of it changed."""
    return _file(HOST), _file(NEXT_HOST)


def _entries(host: HostFingerprint) -> list[Entry]:
    return [
        Entry(digest, f"plug{number}", f"/p/{number}.so", _incident(number), TIME, dict(host.parts))
        for number, digest in enumerate(DIGESTS)
    ]


def _incident(number: int) -> Incident:
    violation = Violation("LD-060", f"crashed \udcff {number}")
    return Incident.of(violation, signal=number or None, last_call="f", backtrace=("a", "b"))


def _file(host: HostFingerprint) -> bytes:
    directory = GivenDirectory()
    memory = QuarantineStore(directory, host)
    before, quarantine_memory.time = quarantine_memory.time, lambda: TIME
    try:
        for entry in _entries(host):
            memory.remember(entry.sha256, entry.name, entry.path, entry.incident)
    finally:
        quarantine_memory.time = before
    return directory.data
