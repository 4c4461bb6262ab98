"""What a verdict rests on beside the library, and what becomes of it when that changes."""

import os
import time

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.probe import Prober
from modular_tf.service.storage.scan_cache import ScanCache
from tests.discovery.conftest import make_candidate
from tests.discovery.elf_builder import ElfBuilder
from tests.discovery.linker_words import subdirectories
from tests.scan_cache import conftest
from tests.scan_cache.conftest import (
    FINDING,
    is_not_stored,
    is_recalled,
    look_into,
    recalled,
    tried,
    write_library,
)


def test_companions_are_remembered(with_companion, companion, plugin):
    known = tried(with_companion)

    assert known.facts.companions == (str(companion),)
    assert is_recalled(with_companion, known)
    assert str(companion) in {file.path for file in known.dependencies}
    assert tried(plugin).dependencies == ()


@pytest.mark.parametrize(
    "place",
    [
        "second",  # another in its place
        "first",  # one that would be taken instead
        *(f"second/{below}" for below in subdirectories()),  # for this processor
        None,  # none
    ],
)
def test_another_companion_changes_the_verdict(with_companion, companion, place):
    assert is_recalled(with_companion, tried(with_companion))
    if place is None:
        companion.unlink()
    else:
        write_library(with_companion.parent / place / "libneeded.so", exports=("changed",))

    assert recalled(with_companion) is None


def test_a_filter_changes_the_verdict_when_it_comes_changes_or_goes(tmp_path):
    auxiliary = ((0x7FFFFFFD, "libfilter.so"),)
    paths = {"runpath": str(tmp_path / "filters")}
    plugin = write_library(tmp_path / "libx.so", filters=auxiliary, paths=paths)
    without = tried(plugin)
    assert (without.facts.problems, without.facts.companions) == ((), ())
    assert is_recalled(plugin, without)

    library = write_library(tmp_path / "filters" / "libfilter.so")
    assert recalled(plugin) is None
    assert tried(plugin).facts.companions == (str(library),)
    write_library(library, exports=("changed",))
    assert recalled(plugin) is None
    tried(plugin)
    library.unlink()
    assert recalled(plugin) is None


def test_another_current_directory_changes_the_verdict(tmp_path, monkeypatch):
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        write_library(place / "libneeded.so", exports=(place.name,))
    plugin = write_library(tmp_path / "libx.so", ("libneeded.so",), paths={"runpath": ":/nowhere"})
    monkeypatch.chdir(places[0])
    known = tried(plugin)

    assert known.facts.companions == (str(places[0] / "libneeded.so"),)
    assert is_recalled(plugin, known)
    monkeypatch.chdir(places[1])
    assert recalled(plugin) is None
    monkeypatch.chdir(places[0])
    assert is_recalled(plugin, known)


def test_another_linker_cache_changes_the_verdict_and_needs_no_new_trial(
    with_companion, linker_cache
):
    known = tried(with_companion)
    assert str(linker_cache) in {file.path for file in known.dependencies}
    assert is_recalled(with_companion, known)
    linker_cache.write_bytes(b"two")
    cache = ScanCache.of_process()

    assert cache.recall(str(with_companion)) is None
    assert cache.finding_for(look_into(cache, with_companion)) == FINDING


@pytest.mark.parametrize("what", ["libneeded.so", "ld.so.cache", "passed over"])
def test_what_changed_since_the_pass_began_is_not_relied_on(
    with_companion, companion, linker_cache, monkeypatch, what
):
    """The probe may have read the one or the other."""
    passed_over = with_companion.parent / "first" / "libneeded.so"
    passed_over.parent.mkdir()
    passed_over.write_bytes(ElfBuilder(machine=8).build())
    paths = {"libneeded.so": companion, "ld.so.cache": linker_cache, "passed over": passed_over}
    for path in paths.values():
        os.utime(path)
    began = max(path.stat().st_ctime_ns for path in paths.values()) + 20_000_000
    monkeypatch.setattr(conftest, "probing_began_ns", lambda: began)
    assert not is_not_stored(with_companion)

    while paths[what].stat().st_ctime_ns <= began:
        paths[what].write_bytes(paths[what].read_bytes())
    assert is_not_stored(with_companion)


def test_a_library_that_went_away_since_it_was_probed_is_not_relied_on(with_companion, companion):
    cache = ScanCache.of_process()
    seen = see(str(with_companion))
    with Prober(HostExports(), environment={}) as prober:
        probe = prober.probe(make_candidate(with_companion))
    companion.unlink()

    assert not cache.describe(probe, seen, began_ns=time.time_ns()).storable


def test_another_library_path_is_another_cache(plugin, monkeypatch):
    tried(plugin)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    assert recalled(plugin) is None
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert recalled(plugin) is not None
