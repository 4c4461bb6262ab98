"""Libraries written from bytes, and a cache of one test."""

import os
from time import time_ns

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.probe import Prober
from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer, noted
from modular_tf.rules import Violation
from modular_tf.service.storage import scan_cache as cache_module
from modular_tf.service.storage.scan_cache import ScanCache
from tests.discovery.conftest import make_candidate
from tests.discovery.elf_builder import ElfBuilder

FINDING = Finding(
    None,
    Offer(("one", "two"), PlatformOffer("TYPE", "PLATFORM", 220)),
    (
        noted(Violation("FS-012", "a message \udcff", "init")),
        noted(Violation(None, "another", "load")),
    ),
)


def write_library(path, needed=(), **more):
    """Write a filesystem plugin that asks for nothing but libraries."""
    settings = {"machine": running_program().machine, "undefined": (), "soname": path.name}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ElfBuilder(needed=needed, **(settings | more)).build())
    return path


def probing_began_ns():
    """Return a time before which files count as written that were written right before."""
    return time_ns() + 60_000_000_000


def look_into(cache, path):
    """Probe a library as a service does; return what can be remembered."""
    began_ns = probing_began_ns()
    seen = see(os.fspath(path))
    if seen is None:
        return None
    with Prober(HostExports(), environment={}) as prober:
        return cache.describe(prober.probe(make_candidate(path)), seen, began_ns)


def recalled(path):
    """Return what a process that starts now recalls."""
    return ScanCache.of_process().recall(os.fspath(path))


def untimed(known):
    """Leave out when files were seen: young ones, as all of a test are, are read once more."""
    if known is None:
        return None
    files = tuple(file._replace(seen_ns=0) for file in known.dependencies)
    return known._replace(seen=known.seen._replace(seen_ns=0), dependencies=files)


def is_recalled(path, known):
    """Say whether a process that starts now recalls this of a library."""
    return untimed(recalled(path)) == untimed(known)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Give the test a cache of its own; return its directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "modular_tf"


@pytest.fixture
def plugin(tmp_path):
    """A good plugin."""
    return write_library(tmp_path / "plugins" / "libgood.so")


def remember(path, **facts):
    """Look into a library and save what was found."""
    cache = ScanCache.of_process()
    known = look_into(cache, path)._replace(**facts)
    assert cache.remember(known)
    assert cache.save()
    return known


def tried(path):
    """Remember of a library that it did no harm."""
    return remember(path, tried=True, finding=FINDING)


def is_not_stored(path):
    """Say whether a library has its digest, and a verdict that holds for this pass only."""
    cache = ScanCache.of_process()
    found = look_into(cache, path)
    assert found.sha256
    tried = found._replace(tried=True, finding=FINDING)
    assert cache.finding_for(tried) is None
    return not (found.storable or cache.remember(tried) or cache.recall(str(path)))


@pytest.fixture
def with_companion(tmp_path):
    """A plugin that needs a library in one of two folders of its own."""
    write_library(tmp_path / "plugins" / "second" / "libneeded.so")
    return write_library(
        tmp_path / "plugins" / "libneedy.so",
        ("libneeded.so",),
        paths={"runpath": "$ORIGIN/first:$ORIGIN/second"},
    )


@pytest.fixture
def companion(with_companion):
    """The library that it needs."""
    return with_companion.parent / "second" / "libneeded.so"


@pytest.fixture
def linker_cache(tmp_path, monkeypatch):
    """A file in the place of the linker's cache."""
    own = tmp_path / "ld.so.cache"
    own.write_bytes(b"one")
    monkeypatch.setattr(cache_module, "LINKER_CACHE", str(own))
    return own
