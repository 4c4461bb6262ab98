"""Target: the file of the scan cache; what is recalled has the shape of an entry for these bytes.

The files that the cache asks about are those of a small world of its own, so that an input means
the same wherever it is checked.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.codec import decode, encode
from modular_tf.discovery import file_identity
from modular_tf.discovery.candidate import Kind, LoadFacts
from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer, noted
from modular_tf.rules import Violation
from modular_tf.rules.loading import INIT_SYMBOL, KERNEL_FUNCTIONS_OFFERED
from modular_tf.service.storage.scan_cache import CacheEntry, ScanCache
from tests.fuzz.record_damage import GivenDirectory, damaged, forged

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

HOST = HostFingerprint((("host", "one"), ("kernel", "6.1")))
OTHER_HOST = HostFingerprint((("host", "two"), ("kernel", "6.1")))
NOW_NS = 1_800_000_000_000_000_123
PLUGINS = ("/p/plain.so", "/p/refused.so", "/p/odd \t\n\udcff.so", "/p/young.so", "/p/device.so")
LIBRARIES = ("/l/libc++.so", "/l/young.so", "/l/missing.so")
# One change of it would not be told by its times from the next.
YOUNG = ("/p/young.so", "/l/young.so")


class Input(NamedTuple):
    """A file.

    Attributes:
        content: Its bytes.
        forged: Whether somebody meant it to be believed.
    """

    content: bytes
    forged: bool


class World(NamedTuple):
    """The files that there are: two generations of each, of which the second is there now.

    Attributes:
        generation: 1 or 2.
    """

    generation: int

    def identity_at(self, path: str) -> FileIdentity | None:
        """Say what the system would; a young file has the same to say in both generations."""
        if path not in (*PLUGINS, *LIBRARIES) or "missing" in path:
            return None
        inode = 10 + (*PLUGINS, *LIBRARIES).index(path)
        if path in YOUNG:
            return FileIdentity(1, inode, 4096, 0, NOW_NS - 1)
        return FileIdentity(1, inode, 4096, 0, 1_700_000_000_000_000_000 + self.generation)

    def see(self, path: str, *, read: bool = True) -> SeenFile | None:
        """Look at a file as `file_identity.see` does."""
        identity = self.identity_at(path)
        if read or path in YOUNG:
            digest = sha256(f"{path!r} {self.generation}".encode()).hexdigest()
            return None if identity is None else SeenFile(path, identity, digest, NOW_NS)
        return SeenFile(path, identity, None, NOW_NS)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let the cache ask about these files."""
        before = file_identity._identity_at, file_identity.see, file_identity.time_ns
        file_identity._identity_at = self.identity_at
        file_identity.see = self.see
        file_identity.time_ns = lambda: NOW_NS
        try:
            yield
        finally:
            file_identity._identity_at, file_identity.see, file_identity.time_ns = before


def make(dice: random.Random) -> Input:
    """Return a file after accidents, or one that somebody forged."""
    if dice.random() < 0.3:
        return Input(forged(dice.choice(_bases()[1:3]), "library", dice), forged=True)
    return Input(damaged(_bases(), dice), forged=False)


def check(given: Input) -> str:
    """Recall every plugin; what comes is what a cache can hold."""
    with World(2).entered():
        cache_of_it = ScanCache(GivenDirectory(given.content), HOST)
        found = {path: cache_of_it.recall(path) for path in PLUGINS}
        for known in _truths():
            found_before = cache_of_it.finding_for(known)
            assert found_before is None or decode(Finding, encode(found_before)) == found_before
    recalled = [known for known in found.values() if known is not None]
    for known in recalled:
        _require_shape(known)
    return f"{'forged' if given.forged else 'damaged'}, {len(recalled)} recalled"


def _require_shape(known: CacheEntry) -> None:
    assert known.seen.identity == World(2).identity_at(known.seen.path)
    assert all(type(kind) is Kind for kind in known.facts.kinds)
    assert isinstance(known.facts.loadable, bool)
    assert all(isinstance(text, str) for text in (*known.facts.companions, *known.facts.absent))
    assert type(known.tried) is bool
    assert known.finding is None or decode(Finding, encode(known.finding)) == known.finding
    assert all(isinstance(file, SeenFile) for file in known.dependencies)


# -- the truth ------------------------------------------------------------------------------


def _remembered(generation: int) -> list[CacheEntry]:
    world = World(generation)
    libraries = [world.see(path, read=False) for path in LIBRARIES]
    dependencies = tuple(file for file in libraries if file is not None)
    plain, refused, odd, young, device = [world.see(path) for path in PLUGINS]
    mark = f"generation {generation}"
    problem = Violation(INIT_SYMBOL, f"{mark} exports nothing")
    warning = Violation(KERNEL_FUNCTIONS_OFFERED, mark, path="/p/device.so")
    filesystem = frozenset([Kind.FILESYSTEM])
    return [
        CacheEntry(plain, LoadFacts(filesystem), dependencies=dependencies),  # type: ignore[arg-type]
        CacheEntry(refused, LoadFacts(frozenset(), (problem,))),  # type: ignore[arg-type]
        CacheEntry(odd, LoadFacts(filesystem, (), (mark, "\udcff"))),  # type: ignore[arg-type]
        CacheEntry(
            young,  # type: ignore[arg-type]
            LoadFacts(filesystem, (), (mark,)),
            dependencies=dependencies[1:],
        ),
        CacheEntry(
            device,  # type: ignore[arg-type]
            LoadFacts(frozenset([Kind.DEVICE]), (warning,), (), ("TF_NewKernelBuilder", mark)),
            dependencies=dependencies[:1],
        ),
    ]


def _tried(known: CacheEntry, trial: int) -> CacheEntry:
    platform = PlatformOffer("TYPE", f"PLATFORM_{trial}", 220)
    notes = (
        noted(Violation("FS-012", f"of {trial}", "init")),
        noted(Violation(None, "\udcff", "load")),
    )
    offer = Offer((f"s{trial}", "t"), platform)
    return known._replace(tried=True, finding=Finding(None, offer, notes))


@cache
def _truths() -> tuple[CacheEntry, ...]:
    """Return all that was ever remembered of the files that are there now."""
    plain = _remembered(2)
    return (*plain, *(_tried(known, 2) for known in plain))


@cache
def _bases() -> tuple[bytes, ...]:
    """Return the cache before and after the plugins changed, after trials, and of another host."""
    return (
        _file(1, HOST, trial=1),
        _file(2, HOST),
        _file(2, HOST, trial=2),
        _file(2, OTHER_HOST, trial=3),
    )


def _file(generation: int, host: HostFingerprint, trial: int | None = None) -> bytes:
    directory = GivenDirectory()
    with World(generation).entered():
        filled = ScanCache(directory, host)
        for known in _remembered(generation):
            assert filled.remember(known if trial is None else _tried(known, trial))
        filled.save()
    return directory.data
