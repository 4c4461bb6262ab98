"""Libraries written from bytes, and a cache of one test."""

from __future__ import annotations

import os
from time import time_ns
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.candidate import Candidate, Source
from modular_tf.discovery.file_identity import see
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.probe import Prober
from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer, noted
from modular_tf.rules import Violation
from modular_tf.service.storage.scan_cache import CacheEntry, ScanCache
from tests.discovery.elf_builder import ElfBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


FINDING = Finding(
    None,
    Offer(("one", "two"), PlatformOffer("TYPE", "PLATFORM", 220)),
    (
        noted(Violation("FS-012", "a message \udcff", "init")),
        noted(Violation(None, "another", "load")),
    ),
)


def write_library(path: Path, needed: tuple[str, ...] = (), **more: object) -> Path:
    """Write a filesystem plugin that asks for nothing but libraries."""
    settings = {
        "machine": running_program().machine,
        "undefined": (),
        "needed": needed,
        "soname": path.name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ElfBuilder(**(settings | more)).build())  # type: ignore[arg-type]
    return path


def candidate(path: Path) -> Candidate:
    """Return a candidate for a path, as if the caller had named it."""
    text = os.fspath(path)
    return Candidate(text, os.path.realpath(text), Source.ARGUMENT, "test", None, (0, 0), path.name)


def probing_began_ns() -> int:
    """Return a time before which files count as written that were written right before."""
    return time_ns() + 60_000_000_000


def look_into(
    cache: ScanCache, path: Path, environment: Mapping[str, str] | None = None
) -> CacheEntry | None:
    """Probe a library as a service does; return what can be remembered."""
    began_ns = probing_began_ns()
    seen = see(os.fspath(path))
    if seen is None:
        return None
    with Prober(HostExports(), environment=environment or {}) as prober:
        return cache.describe(prober.probe(candidate(path)), seen, began_ns)


def fill(cache: ScanCache, *paths: Path) -> None:
    """Look into libraries and keep what was found."""
    for path in paths:
        found = look_into(cache, path)
        assert found is not None
        assert cache.remember(found)
    assert cache.save()


def recalled(path: Path) -> CacheEntry | None:
    """Return what a process that starts now recalls."""
    return ScanCache.of_process().recall(os.fspath(path))


def untimed(known: CacheEntry | None) -> CacheEntry | None:
    """Leave out when files were seen: young ones, as all of a test are, are read once more."""
    if known is None:
        return None
    files = tuple(file._replace(seen_ns=0) for file in known.dependencies)
    return known._replace(seen=known.seen._replace(seen_ns=0), dependencies=files)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own; return its directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "modular_tf"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A good plugin."""
    return write_library(tmp_path / "plugins" / "libgood.so")


def tried(path: Path, cache: ScanCache | None = None) -> CacheEntry:
    """Remember of a library that it did no harm."""
    cache = cache or ScanCache.of_process()
    found = look_into(cache, path)
    assert found is not None
    known = found._replace(tried=True, finding=FINDING)
    assert cache.remember(known)
    assert cache.save()
    return known


def is_not_kept(path: Path) -> bool:
    """Tell whether a library has its digest, and a verdict that holds for this pass only."""
    cache = ScanCache.of_process()
    found = look_into(cache, path)
    assert found is not None
    assert found.sha256
    tried = found._replace(tried=True, finding=FINDING)
    assert cache.finding_for(tried) is None
    return not (found.storable or cache.remember(tried) or cache.recall(str(path)))


@pytest.fixture
def with_companion(tmp_path: Path) -> Path:
    """A plugin that needs a library in one of two folders of its own."""
    write_library(tmp_path / "plugins" / "second" / "libneeded.so")
    return write_library(
        tmp_path / "plugins" / "libneedy.so",
        ("libneeded.so",),
        paths={"runpath": "$ORIGIN/first:$ORIGIN/second"},
    )
