"""LD-082: what is mapped is what was checked, whatever happens to the file in between.

Each library leaves a trace by its constructor, so one that should not have been mapped shows.
"""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.errors import PluginError
from modular_tf.loading import binding, private_copy
from modular_tf.loading.binding import map_file
from tests.fixtures.compiler import compile_object, link_library
from tests.loading.conftest import load_seen, put, settled

pytestmark = pytest.mark.usefixtures("traces")

SOURCE = Path(__file__).with_name("tracing_plugin.c")


@pytest.fixture
def build(tmp_path):
    """Build a library that leaves a trace of its name; each has bytes of its own."""

    def make(name):
        built = link_library(f"lib{name}.so", [compile_object(SOURCE, [f'NAME="{name}"'])])
        return put(built, tmp_path / f"{name}.so")

    return make


@pytest.fixture
def place(build, tmp_path):
    """Return a good library in a directory of its own."""
    folder = tmp_path / "place"
    folder.mkdir()
    return Path(shutil.copy(build("good"), folder / "libx.so"))


@pytest.fixture
def evil(build):
    return build("evil")


def by_rename(place, evil):
    new = place.with_name("new")
    shutil.copy(evil, new)
    new.replace(place)


def by_rewriting(place, evil):
    data = evil.read_bytes()
    with place.open("r+b") as stream:
        stream.write(data)
        stream.truncate()


SWAPS = [by_rename, by_rewriting]
STEPS = ["_targets", "_map", "_map_stub", "stub_library", "in_memory"]
in_place_or_copied = pytest.mark.parametrize("sealed", [False, True], ids=["mapped", "sealed"])
at_each_step = pytest.mark.parametrize("step", STEPS)
of_each_age = pytest.mark.parametrize("age", ["settled", "fresh"])


def assert_refused(checked, place, traces, rule="LD-082", **options):
    with pytest.raises(PluginError) as caught:
        map_file(str(place), [], checked=checked, **options)
    assert caught.value.rule == rule
    assert traces.names == []
    return caught.value.message


@in_place_or_copied
def test_what_was_checked_is_mapped(sealed, place, traces):
    library = load_seen(place, age="settled", sealed=sealed)
    entry = library.symbol("TF_InitPlugin")

    assert entry
    assert traces.names == ["good"]
    assert (os.fsencode(place) in Path("/proc/self/maps").read_bytes()) is not sealed
    if sealed:
        place.write_bytes(b"\0" * place.stat().st_size)
        assert library.symbol("TF_InitPlugin") == entry


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize(("age", "sealed"), [("fresh", False), ("fresh", True), ("settled", False)])
def test_a_file_that_is_swapped_after_the_check_is_not_mapped(
    swap, age, sealed, place, evil, traces
):
    seen = settled(place) if age == "settled" else see(str(place))
    swap(place, evil)

    message = assert_refused([seen], place, traces, sealed=sealed)

    assert f"{place}: it was replaced or written to" in message


def test_a_rewrite_that_leaves_all_times_is_seen_by_the_bytes(place, evil, traces, monkeypatch):
    """Two changes within one tick of the clock have the same times."""
    seen = see(str(place))
    by_rewriting(place, evil)
    assert place.stat().st_size == seen.identity.size
    monkeypatch.setattr(private_copy.FileIdentity, "of", lambda status: seen.identity)

    assert_refused([seen], place, traces)


@pytest.fixture
def do_before(monkeypatch):
    """Have something done before a function of a module is called for the first time."""

    def patch(module, name, *deed):
        function, deeds = getattr(module, name), iter([deed])

        def patched(*arguments, **options):
            for do, *given in deeds:
                do(*given)
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, patched)

    return patch


@of_each_age
@at_each_step
def test_a_path_that_is_swapped_during_the_load_does_not_matter(
    step, age, place, evil, traces, do_before
):
    """From the moment that the file is open, nothing asks for the path again."""
    do_before(binding, step, by_rename, place, evil)

    assert load_seen(place, age=age).symbol("TF_InitPlugin")
    assert traces.names == ["good"]


@of_each_age
@at_each_step
def test_a_file_that_is_rewritten_during_the_load_is_not_mapped(
    step, age, place, evil, traces, do_before
):
    os.utime(place, (1, 1))
    do_before(binding, step, by_rewriting, place, evil)
    checked = settled(place) if age == "settled" else see(str(place))

    if age == "fresh" and step != "_targets":  # it was copied before
        assert map_file(str(place), [], checked=[checked]).symbol("TF_InitPlugin")
        assert traces.names == ["good"]
    else:
        assert_refused([checked], place, traces)


@pytest.mark.parametrize("swap", SWAPS)
def test_a_companion_that_is_swapped_is_not_mapped(swap, build, place, evil, traces, tmp_path):
    companion = tmp_path / "companions" / "libcompanion.so"
    companion.parent.mkdir()
    shutil.copy(build("companion"), companion)
    seen = [see(str(place)), see(str(companion))]

    swap(companion, evil)

    with pytest.raises(PluginError, match=str(companion)) as caught:
        map_file(str(place), [str(companion)], checked=seen)
    assert caught.value.rule == "LD-082"
    assert traces.names == []


def test_a_file_that_appeared_after_the_check_is_not_mapped(place, traces):
    assert_refused([], place, traces)


def test_the_same_bytes_are_mapped_once(build, place, tmp_path):
    first = load_seen(place, sealed=True)
    by_rewriting(place, build("other"))
    other = load_seen(place, sealed=True)
    by_rewriting(place, tmp_path / "good.so")
    copy = Path(shutil.copy(place, tmp_path / "liby.so"))

    entry = first.symbol("TF_InitPlugin")
    assert other.symbol("TF_InitPlugin") != entry
    for same in (place, copy):
        assert load_seen(same, sealed=True).symbol("TF_InitPlugin") == entry


def test_nobody_can_write_to_a_copy(place):
    with (
        closing(private_copy.OpenedFile(str(place))) as file,
        closing(private_copy.copy_for_host(file)) as copy,
    ):
        with pytest.raises(PermissionError):
            os.pwrite(copy.fd, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(copy.fd, 0)


def test_what_may_not_run_where_it_lies_does_not_run_from_a_copy(place, traces, monkeypatch):
    found = os.statvfs(place)
    no_exec = os.statvfs_result((*found[:8], found.f_flag | os.ST_NOEXEC, found.f_namemax))
    monkeypatch.setattr(os, "fstatvfs", lambda fd: no_exec)

    assert "noexec" in assert_refused([see(str(place))], place, traces, "LD-050", sealed=True)


def test_descriptors_are_closed_once_a_library_is_mapped(build, place):
    load_seen(place)  # whatever is opened once for the process
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(5):  # each beside the last, which is mapped and must stay whole to its end
        by_rename(place, build(f"good{number}"))
        load_seen(place, age="settled")
        by_rename(place, build(f"better{number}"))
        load_seen(place, sealed=True)

    assert len(list(Path("/proc/self/fd").iterdir())) == before
