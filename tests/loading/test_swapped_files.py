"""LD-082: what is mapped is what was checked, whatever happens to the file in between.

Each library leaves a trace by its constructor, so one that should not have been mapped tells.
"""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest

from modular_tf.discovery.file_identity import SETTLED_AFTER_NS, see
from modular_tf.discovery.linking.host_exports import REPLACED_SONAMES
from modular_tf.errors import PluginError
from modular_tf.loading import binding, private_copy
from modular_tf.loading.binding import map_file
from tests.fixtures.compiler import compile_object, link_library

pytestmark = pytest.mark.usefixtures("traces")

SOURCE = Path(__file__).with_name("tracing_plugin.c")


@pytest.fixture
def build(tmp_path):
    """Build a library that leaves a trace of its name; each has bytes of its own."""

    def make(name):
        built = link_library(f"lib{name}.so", [compile_object(SOURCE, [f'NAME="{name}"'])])
        file = Path(shutil.copy(built, tmp_path / f"{name}.so"))
        with file.open("ab") as stream:  # where no linker looks
            stream.write(os.urandom(16))
        return file

    return make


@pytest.fixture
def place(tmp_path):
    """Return a path in a directory of its own."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder / "libx.so"


def settled(path):
    """Return a file as seen long after its last change, when its times tell all."""
    seen = see(str(path))
    assert seen is not None
    return seen._replace(seen_ns=seen.identity.ctime_ns + SETTLED_AFTER_NS + 1, sha256=None)


def load(path, *checked, companions=(), **options):
    return map_file(
        str(path), [str(companion) for companion in companions], checked=checked, **options
    )


def by_rename(place, evil):
    new = place.with_name("new")
    shutil.copy(evil, new)
    new.replace(place)


def by_rewriting(place, evil):
    data = evil.read_bytes()
    with place.open("r+b") as stream:
        stream.write(data)
        stream.truncate()


def by_removal_and_copy(place, evil):
    place.unlink()
    shutil.copy(evil, place)


def by_link(place, evil):
    place.unlink()
    place.symlink_to(evil)


def by_directory(place, evil):
    folder = place.parent
    folder.rename(folder.with_name("aside"))
    folder.mkdir()
    shutil.copy(evil, place)


def by_directory_link(place, evil):
    folder = place.parent
    folder.rename(folder.with_name("aside"))
    other = folder.with_name("other")
    other.mkdir()
    shutil.copy(evil, other / place.name)
    folder.symlink_to(other, target_is_directory=True)


SWAPS = [
    by_rename,
    by_rewriting,
    by_removal_and_copy,
    by_link,
    by_directory,
    by_directory_link,
]


@pytest.mark.parametrize("sealed", [False, True], ids=["mapped", "sealed"])
def test_what_was_checked_is_mapped(sealed, build, place, traces):
    shutil.copy(build("good"), place)

    library = load(place, see(str(place)), sealed=sealed)

    assert library.symbol("TF_InitPlugin")
    assert traces.names == ["good"]


@pytest.mark.parametrize("sealed", [False, True], ids=["mapped", "sealed"])
@pytest.mark.parametrize("swap", SWAPS)
def test_a_file_that_is_swapped_after_the_check_is_not_mapped(swap, sealed, build, place, traces):
    shutil.copy(build("good"), place)
    seen = see(str(place))

    swap(place, build("evil"))

    with pytest.raises(PluginError, match=f"{place}: it was replaced or written to") as caught:
        load(place, seen, sealed=sealed)
    assert caught.value.rule == "LD-082"
    assert traces.names == []


def test_a_rewrite_that_leaves_all_times_is_told_by_the_bytes(build, place, traces, monkeypatch):
    """Two changes within one tick of the clock have the same times."""
    shutil.copy(build("good"), place)
    seen = see(str(place))
    by_rewriting(place, build("evil"))
    assert place.stat().st_size == seen.identity.size
    monkeypatch.setattr(private_copy.FileIdentity, "of", lambda status: seen.identity)

    with pytest.raises(PluginError) as caught:
        load(place, seen)

    assert caught.value.rule == "LD-082"
    assert traces.names == []


STEPS = ["_targets", "_map", "_map_stub", "stub_library", "in_memory"]


@pytest.mark.parametrize("age", ["settled", "fresh"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("swap", [swap for swap in SWAPS if swap is not by_rewriting])
def test_a_path_that_is_swapped_during_the_load_does_not_matter(
    swap, step, age, build, place, traces, monkeypatch
):
    """From the moment that the file is open, nothing asks for the path again."""
    shutil.copy(build("good"), place)
    evil = build("evil")
    do_step = getattr(binding, step)
    swaps = iter([swap])

    def swap_first(*arguments, **options):
        for how in swaps:
            how(place, evil)
        return do_step(*arguments, **options)

    monkeypatch.setattr(binding, step, swap_first)

    library = load(place, settled(place) if age == "settled" else see(str(place)))

    assert library.symbol("TF_InitPlugin")
    assert traces.names == ["good"]


@pytest.mark.parametrize("age", ["settled", "fresh"])
@pytest.mark.parametrize("step", STEPS)
def test_a_file_that_is_rewritten_during_the_load_is_not_mapped(
    step, age, build, place, traces, monkeypatch
):
    shutil.copy(build("good"), place)
    os.utime(place, (1, 1))
    evil = build("evil")
    do_step = getattr(binding, step)

    def rewrite_first(*arguments, **options):
        by_rewriting(place, evil)
        return do_step(*arguments, **options)

    monkeypatch.setattr(binding, step, rewrite_first)
    checked = settled(place) if age == "settled" else see(str(place))

    copied_before = age == "fresh" and step != "_targets"
    if copied_before:
        assert load(place, checked).symbol("TF_InitPlugin")
    else:
        with pytest.raises(PluginError) as caught:
            load(place, checked)
        assert caught.value.rule == "LD-082"
    assert traces.names == (["good"] if copied_before else [])


def test_a_rewrite_during_the_load_is_not_mapped_from_a_copy(build, place, traces, monkeypatch):
    shutil.copy(build("good"), place)
    evil = build("evil")
    sendfile = os.sendfile

    def rewrite_first(*given):
        by_rewriting(place, evil)
        return sendfile(*given)

    monkeypatch.setattr(private_copy.os, "sendfile", rewrite_first)

    with pytest.raises(PluginError) as caught:
        load(place, see(str(place)), sealed=True)

    assert caught.value.rule == "LD-082"
    assert traces.names == []


@pytest.mark.parametrize("swap", SWAPS)
def test_a_companion_that_is_swapped_is_not_mapped(swap, build, place, traces):
    companion = place.parent.parent / "companions" / "libcompanion.so"
    companion.parent.mkdir()
    shutil.copy(build("companion"), companion)
    shutil.copy(build("good"), place)
    seen = [see(str(place)), see(str(companion))]

    swap(companion, build("evil"))

    with pytest.raises(PluginError, match=str(companion)) as caught:
        load(place, *seen, companions=[companion])
    assert caught.value.rule == "LD-082"
    assert traces.names == []


def test_a_file_that_appeared_after_the_check_is_not_mapped(build, place, traces):
    shutil.copy(build("evil"), place)

    with pytest.raises(PluginError) as caught:
        load(place)

    assert caught.value.rule == "LD-082"
    assert traces.names == []


def test_a_thread_that_swaps_all_the_time_never_gets_its_file_mapped(build, place, traces):
    """Each round has other bytes, or the first mapping would answer for the next."""
    evil = build("evil")
    shutil.copy(evil, place)
    goods = [build(f"good{number}") for number in range(20)]
    current = [goods[0]]
    done = threading.Event()

    def swap_on():
        while not done.is_set():
            by_rename(place, evil)
            by_rename(place, current[0])
            by_rewriting(place, evil)

    swapper = threading.Thread(target=swap_on)
    swapper.start()
    outcomes = []
    try:
        for good in goods:
            current[0] = good
            checked = wait_for(place, good)
            try:
                load(place, checked)
                outcomes.append("mapped")
            except PluginError as error:
                outcomes.append(error.rule)
    finally:
        done.set()
        swapper.join()

    assert set(outcomes) <= {"mapped", "LD-082"}
    assert "evil" not in traces.names


def wait_for(place, good):
    """Return the file as it was checked in a moment in which it was the good one."""
    wanted = see(str(good)).sha256
    while True:
        seen = see(str(place))
        if seen is not None and seen.sha256 == wanted:
            return seen


def test_sealed_bytes_stay_when_the_file_is_overwritten(build, place):
    shutil.copy(build("good"), place)
    library = load(place, see(str(place)), sealed=True)
    before = library.symbol("TF_InitPlugin")

    place.write_bytes(b"\0" * place.stat().st_size)

    assert library.symbol("TF_InitPlugin") == before


def test_nobody_can_write_to_a_copy(build, place):
    shutil.copy(build("good"), place)
    with (
        closing(private_copy.OpenedFile(str(place))) as file,
        closing(private_copy.copy_for_host(file, REPLACED_SONAMES)) as copy,
    ):
        with pytest.raises(PermissionError):
            os.pwrite(copy.fd, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(copy.fd, 0)


def test_what_may_not_run_where_it_lies_does_not_run_from_a_copy(build, place, traces, monkeypatch):
    shutil.copy(build("evil"), place)
    found = os.statvfs(place)
    no_exec = os.statvfs_result((*found[:8], found.f_flag | os.ST_NOEXEC, found.f_namemax))
    monkeypatch.setattr(os, "fstatvfs", lambda fd: no_exec)

    with pytest.raises(PluginError, match="noexec") as caught:
        load(place, see(str(place)), sealed=True)

    assert caught.value.rule == "LD-050"
    assert traces.names == []


def test_descriptors_are_closed_once_a_library_is_mapped(build, place):
    shutil.copy(build("good"), place)
    load(place, see(str(place)))  # whatever is opened once for the process
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(5):  # each beside the last, which is mapped and must stay whole to its end
        by_rename(place, build(f"good{number}"))
        load(place, settled(place))
        by_rename(place, build(f"better{number}"))
        load(place, see(str(place)), sealed=True)

    assert len(list(Path("/proc/self/fd").iterdir())) == before
