"""Target: the file of the quarantine; what is recalled has the shape of an entry."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

from modular_tf.codec import decode, encode
from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation
from modular_tf.service.storage import quarantine
from modular_tf.service.storage.quarantine import Entry, QuarantineStore
from tests.fuzz.record_damage import GivenDirectory, made_file

_HOST = HostFingerprint((("machine-id", "one"), ("machine", "x"), ("kernel", "6.1")))
_NEXT_HOST = HostFingerprint((("machine-id", "one"), ("machine", "x"), ("kernel", "6.2")))
_DIGESTS = ("0123456789abcdef" * 4, "f" * 64, "e" * 64)
_TIME = 1_800_000_000.25


def make(dice):
    return made_file(_bases(), _bases(), "plugin", dice)


def check(given):
    """List, name and recall all; what comes has the right shape."""
    store = QuarantineStore(GivenDirectory(given.content), _HOST)
    entries = store.entries()
    found = [entry for digest in _DIGESTS if (entry := store.recall(digest)) is not None]
    named = [entry for name in ("plug0", "/p/1.so", _DIGESTS[2][:7]) for entry in store.named(name)]
    for entry in (*entries, *found, *named):
        assert decode(Entry, encode(entry)) == entry or entry.time != entry.time  # NaN
    assert all(dict(_HOST.parts) == dict(entry.host) for entry in found)
    assert {entry.sha256 for entry in found} <= set(_DIGESTS)
    assert len({entry.sha256 for entry in found}) == len(found)
    return given.kind(len(found))


@cache
def _bases():
    """Return the quarantine of one machine, before and after something of it changed."""
    return _file(_HOST), _file(_NEXT_HOST)


def _file(host):
    directory = GivenDirectory()
    store = QuarantineStore(directory, host)
    with patch.object(quarantine, "time", lambda: _TIME):
        for number, digest in enumerate(_DIGESTS):
            violation = Violation("LD-060", f"crashed \udcff {number}")
            incident = Incident.of(
                violation, signal=number or None, last_call="f", backtrace=("a", "b")
            )
            store.remember(digest, f"plug{number}", f"/p/{number}.so", incident)
    return directory.data
