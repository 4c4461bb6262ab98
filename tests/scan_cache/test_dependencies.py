"""What a verdict rests on beside the library, and what becomes of it when that changes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.file_identity import FileIdentity, see
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.probe import Prober
from modular_tf.service.storage import database as database_module
from modular_tf.service.storage import scan_cache as cache_module
from modular_tf.service.storage.scan_cache import ScanCache
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.linker_words import linker_words
from tests.scan_cache import conftest
from tests.scan_cache.conftest import (
    candidate,
    fill,
    is_not_kept,
    look_into,
    recalled,
    tried,
    untimed,
    write_library,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_companions_are_remembered(with_companion: Path):
    known = tried(with_companion)
    companion = str(with_companion.parent / "second" / "libneeded.so")

    assert known.facts.companions == (companion,)
    assert untimed(recalled(with_companion)) == untimed(known)
    assert companion in {file.path for file in known.dependencies}


def test_a_changed_companion_changes_the_verdict(with_companion: Path):
    tried(with_companion)
    write_library(with_companion.parent / "second" / "libneeded.so", exports=("changed",))

    assert recalled(with_companion) is None


def test_a_missing_companion_changes_the_verdict(with_companion: Path):
    tried(with_companion)
    (with_companion.parent / "second" / "libneeded.so").unlink()

    assert recalled(with_companion) is None


def test_a_companion_that_would_be_taken_instead_changes_the_verdict(with_companion: Path):
    tried(with_companion)
    write_library(with_companion.parent / "first" / "libneeded.so")

    assert recalled(with_companion) is None


@pytest.mark.parametrize("below", linker_words().subdirectories)
def test_one_for_this_processor_changes_the_verdict(with_companion: Path, below: str):
    known = tried(with_companion)
    assert untimed(recalled(with_companion)) == untimed(known)
    write_library(with_companion.parent / "second" / below / "libneeded.so")

    assert recalled(with_companion) is None


def test_a_filter_changes_the_verdict_when_it_comes_changes_or_goes(tmp_path: Path):
    auxiliary = ((0x7FFFFFFD, "libfilter.so"),)
    paths = {"runpath": str(tmp_path / "filters")}
    plugin = write_library(tmp_path / "libx.so", filters=auxiliary, paths=paths)
    without = tried(plugin)
    assert (without.facts.problems, without.facts.companions) == ((), ())
    assert untimed(recalled(plugin)) == untimed(without)

    library = write_library(tmp_path / "filters" / "libfilter.so")
    assert recalled(plugin) is None
    assert tried(plugin).facts.companions == (str(library),)
    write_library(library, exports=("changed",))
    assert recalled(plugin) is None
    tried(plugin)
    library.unlink()
    assert recalled(plugin) is None


def test_another_current_directory_changes_the_verdict(tmp_path: Path, monkeypatch):
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        write_library(place / "libneeded.so", exports=(place.name,))
    plugin = write_library(tmp_path / "libx.so", ("libneeded.so",), paths={"runpath": ":/nowhere"})
    monkeypatch.chdir(places[0])
    known = tried(plugin)

    assert known.facts.companions == (str(places[0] / "libneeded.so"),)
    assert untimed(recalled(plugin)) == untimed(known)
    monkeypatch.chdir(places[1])
    assert recalled(plugin) is None
    monkeypatch.chdir(places[0])
    assert untimed(recalled(plugin)) == untimed(known)


def test_another_linker_cache_changes_the_verdict(with_companion: Path, tmp_path, monkeypatch):
    own = tmp_path / "ld.so.cache"
    own.write_bytes(b"one")
    monkeypatch.setattr(cache_module, "LINKER_CACHE", str(own))
    known = tried(with_companion)
    assert str(own) in {file.path for file in known.dependencies}
    assert untimed(recalled(with_companion)) == untimed(known)
    own.write_bytes(b"two")

    assert recalled(with_companion) is None


def test_a_dependency_with_new_times_is_the_same(with_companion: Path):
    known = tried(with_companion)
    os.utime(with_companion.parent / "second" / "libneeded.so", (1, 1))
    cache = ScanCache.of_process()
    again = cache.recall(str(with_companion))

    assert again is not None
    assert {file.identity for file in again.dependencies} != {
        file.identity for file in known.dependencies
    }
    assert again.finding == known.finding
    cache.save()
    assert untimed(recalled(with_companion)) == untimed(again)


@pytest.mark.parametrize("what", ["libneeded.so", "ld.so.cache", "passed over"])
def test_what_changed_since_the_pass_began_is_not_relied_on(
    with_companion: Path, tmp_path: Path, monkeypatch, what: str
):
    """The probe may have read the one or the other."""
    own = tmp_path / "ld.so.cache"
    own.write_bytes(b"one")
    monkeypatch.setattr(cache_module, "LINKER_CACHE", str(own))
    paths = {
        "libneeded.so": with_companion.parent / "second" / "libneeded.so",
        "ld.so.cache": own,
        "passed over": with_companion.parent / "first" / "libneeded.so",
    }
    paths["passed over"].parent.mkdir()
    paths["passed over"].write_bytes(ElfBuilder(machine=8).build())
    time.sleep(0.03)
    began = time.time_ns()
    monkeypatch.setattr(conftest, "probing_began_ns", lambda: began)
    assert not is_not_kept(with_companion)

    paths[what].write_bytes(paths[what].read_bytes())
    assert is_not_kept(with_companion)


def test_a_later_prober_does_not_rely_on_what_an_earlier_one_saw(with_companion: Path):
    """Of two threads, one probes what the other has replaced a file for meanwhile."""
    cache = ScanCache.of_process()
    companion = with_companion.parent / "second" / "libneeded.so"
    first = look_into(cache, with_companion)
    companion.write_bytes(companion.read_bytes() + b"more")
    second = look_into(cache, with_companion)

    assert first is not None
    assert second is not None
    identities = [file.identity for file in second.dependencies if file.path == str(companion)]
    assert identities == [FileIdentity.at(str(companion))]


def test_a_library_that_went_away_since_it_was_probed_is_not_relied_on(with_companion: Path):
    cache = ScanCache.of_process()
    seen = see(str(with_companion))
    with Prober(HostExports(), environment={}) as prober:
        probe = prober.probe(candidate(with_companion))
    (with_companion.parent / "second" / "libneeded.so").unlink()

    assert seen is not None
    assert not cache.describe(probe, seen, began_ns=time.time_ns()).storable


def test_a_plugin_without_needs_depends_on_nothing_else(plugin: Path):
    assert tried(plugin).dependencies == ()


def test_another_library_path_is_another_cache(plugin: Path, monkeypatch):
    tried(plugin)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    assert recalled(plugin) is None
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert recalled(plugin) is not None


def test_shared_companions_stay_as_long_as_the_newest_that_needs_them(
    with_companion: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where there is no room the oldest go, but not what the newest needs."""
    monkeypatch.setattr(database_module, "_MOST_PAGES", 14)
    others = [with_companion.with_name(f"libneedy{number}.so") for number in range(60)]
    for other in others:
        other.write_bytes(with_companion.read_bytes())
        fill(ScanCache.of_process(), other)

    assert recalled(others[0]) is None
    known = recalled(others[-1])
    assert known is not None
    assert str(with_companion.parent / "second" / "libneeded.so") in {
        file.path for file in known.dependencies
    }
