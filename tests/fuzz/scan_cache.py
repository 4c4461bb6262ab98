"""Target: the file of the scan cache; what is recalled has the shape of an entry for these bytes.

The files that the cache asks about are those of a small world of its own, so that an input means
the same wherever it is checked.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import NamedTuple
from unittest.mock import patch

from modular_tf.codec import decode, encode
from modular_tf.discovery import file_identity
from modular_tf.discovery.candidate import Kind, LoadFacts
from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer, noted
from modular_tf.rules import Violation
from modular_tf.rules.loading import INIT_SYMBOL, KERNEL_FUNCTIONS_OFFERED
from modular_tf.service.storage.scan_cache import CacheEntry, ScanCache
from tests.fuzz.record_damage import GivenDirectory, made_file

_HOST = HostFingerprint((("host", "one"), ("kernel", "6.1")))
_OTHER_HOST = HostFingerprint((("host", "two"), ("kernel", "6.1")))
_NOW_NS = 1_800_000_000_000_000_123
_PLUGINS = ("/p/plain.so", "/p/refused.so", "/p/odd \t\n\udcff.so", "/p/young.so", "/p/device.so")
_LIBRARIES = ("/l/libc++.so", "/l/young.so", "/l/missing.so")


class _World(NamedTuple):
    """The files that there are: two generations of each, of which the second is there now."""

    generation: int

    def identity_at(self, path):
        """Answer as the system would; a young file has the same times in both generations."""
        if path not in (*_PLUGINS, *_LIBRARIES) or "missing" in path:
            return None
        inode = 10 + (*_PLUGINS, *_LIBRARIES).index(path)
        changed = _NOW_NS - 1 if "young" in path else 1_700_000_000_000_000_000 + self.generation
        return FileIdentity(1, inode, 4096, 0, changed)

    def see(self, path, *, read=True):
        identity = self.identity_at(path)
        if not read and "young" not in path:
            return SeenFile(path, identity, None, _NOW_NS)
        digest = sha256(f"{path!r} {self.generation}".encode()).hexdigest()
        return None if identity is None else SeenFile(path, identity, digest, _NOW_NS)

    def entered(self):
        return patch.multiple(
            file_identity, _identity_at=self.identity_at, see=self.see, time_ns=lambda: _NOW_NS
        )


def make(dice):
    return made_file(_bases(), _bases()[1:3], "library", dice)


def check(given):
    """Recall every plugin; what comes is what a cache can hold."""
    with _World(2).entered():
        used = ScanCache(GivenDirectory(given.content), _HOST)
        found = [used.recall(path) for path in _PLUGINS]
        for known in _truths():
            finding = used.finding_for(known)
            assert finding is None or decode(Finding, encode(finding)) == finding
    recalled = [known for known in found if known is not None]
    for known in recalled:
        assert known.seen.identity == _World(2).identity_at(known.seen.path)
        assert all(type(kind) is Kind for kind in known.facts.kinds)
        assert isinstance(known.facts.loadable, bool)
        assert all(isinstance(text, str) for text in (*known.facts.companions, *known.facts.absent))
        assert type(known.tried) is bool
        assert known.finding is None or decode(Finding, encode(known.finding)) == known.finding
        assert all(isinstance(file, SeenFile) for file in known.dependencies)
    return given.kind(len(recalled))


# -- the truth ------------------------------------------------------------------------------


def _remembered(generation):
    world = _World(generation)
    libraries = [world.see(path, read=False) for path in _LIBRARIES]
    libraries = tuple(file for file in libraries if file is not None)
    plain, refused, odd, young, device = map(world.see, _PLUGINS)
    mark = f"generation {generation}"
    problem = Violation(INIT_SYMBOL, f"{mark} exports nothing")
    warning = Violation(KERNEL_FUNCTIONS_OFFERED, mark, path="/p/device.so")
    filesystem = frozenset([Kind.FILESYSTEM])
    of_device = LoadFacts(frozenset([Kind.DEVICE]), (warning,), (), ("TF_NewKernelBuilder", mark))
    return [
        CacheEntry(plain, LoadFacts(filesystem), dependencies=libraries),
        CacheEntry(refused, LoadFacts(frozenset(), (problem,))),
        CacheEntry(odd, LoadFacts(filesystem, (), (mark, "\udcff"))),
        CacheEntry(young, LoadFacts(filesystem, (), (mark,)), dependencies=libraries[1:]),
        CacheEntry(device, of_device, dependencies=libraries[:1]),
    ]


def _tried(known, trial):
    platform = PlatformOffer("TYPE", f"PLATFORM_{trial}", 220)
    notes = (
        noted(Violation("FS-012", f"of {trial}", "init")),
        noted(Violation(None, "\udcff", "load")),
    )
    offer = Offer((f"s{trial}", "t"), platform)
    return known._replace(tried=True, finding=Finding(None, offer, notes))


@cache
def _truths():
    """Return all that was ever remembered of the files that are there now."""
    plain = _remembered(2)
    return (*plain, *(_tried(known, 2) for known in plain))


@cache
def _bases():
    """Return the cache before and after the plugins changed, after trials, and of another host."""
    return (
        _file(1, _HOST, trial=1),
        _file(2, _HOST),
        _file(2, _HOST, trial=2),
        _file(2, _OTHER_HOST, trial=3),
    )


def _file(generation, host, trial=None):
    directory = GivenDirectory()
    with _World(generation).entered():
        filled = ScanCache(directory, host)
        for known in _remembered(generation):
            assert filled.remember(known if trial is None else _tried(known, trial))
        filled.save()
    return directory.data
