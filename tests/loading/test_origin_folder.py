"""Libraries that are mapped by descriptor find what lies beside their files."""

import ctypes
import os
from pathlib import Path

import pytest

from modular_tf.loading import origin_folder
from modular_tf.loading.bound_files import bound_files
from tests.fixtures.compiler import compile_object, link_library
from tests.fixtures.matrices import sampled_product
from tests.loading.conftest import load_seen
from tests.loading.conftest import put as put_file

pytestmark = pytest.mark.usefixtures("temporary")

SOURCE = Path(__file__).with_name("neighbour_plugin.c")
NEIGHBOUR = "libneighbour.so"
RUNPATH = "-Wl,--enable-new-dtags,-rpath,"
RPATH = "-Wl,--disable-new-dtags,-rpath,"


def put(folder, name, *macros, options=()):
    """Put a library into a folder."""
    folder.mkdir(exist_ok=True)
    return put_file(link_library(name, [compile_object(SOURCE, macros)], options), folder / name)


def put_asking(folder, name="libx.so", search="$ORIGIN"):
    """Put a library into a folder that asks the linker for its neighbour."""
    return put(folder, name, "ASKS_LINKER", options=[RUNPATH + search])


def finds_neighbour(library):
    return bool(ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("find_neighbour"))())


WAYS = {
    "runpath": ("ASKS_LINKER", [RUNPATH + "$ORIGIN"], "."),
    "rpath": ("ASKS_LINKER", [RPATH + "${ORIGIN}"], "."),
    "below": ("ASKS_LINKER", [RUNPATH + "$ORIGIN/libs"], "libs"),
    "above": ("ASKS_LINKER", [RUNPATH + "$ORIGIN/.."], ".."),
    "beside its folder": ("ASKS_LINKER", [RUNPATH + "/nowhere:$ORIGIN/../libs"], "../libs"),
    "dladdr": ("ASKS_DLADDR", [], "."),
}
of_each_age = pytest.mark.parametrize("age", ["settled", "fresh"])


@pytest.mark.parametrize(("way", "age"), sampled_product(list(WAYS), ["settled", "fresh"]))
def test_a_neighbour_is_found(way, age, folder):
    macro, options, place = WAYS[way]
    put(folder / place, NEIGHBOUR)
    library = put(folder, "libx.so", macro, options=options)

    assert finds_neighbour(load_seen(library, age=age))


def test_a_new_library_of_the_same_name_is_another(folder):
    put(folder, NEIGHBOUR)
    first = load_seen(put_asking(folder))
    second = load_seen(put_asking(folder))

    assert first.symbol("find_neighbour") != second.symbol("find_neighbour")
    assert finds_neighbour(first)
    assert finds_neighbour(second)


def test_libraries_of_one_folder_share_theirs(folder, temporary):
    put(folder, NEIGHBOUR)
    for name in ("liba.so", "libb.so", "libc.so"):
        assert finds_neighbour(load_seen(put_asking(folder, name)))

    (own,) = temporary.iterdir()
    assert len(list(own.iterdir())) == len({"the lock", "one folder"})
    assert own.stat().st_mode & 0o777 == 0o700


def test_without_folders_libraries_are_mapped_all_the_same(folder, monkeypatch, temporary):
    """Where there is no place for them, and by a privileged process."""

    def fail():
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(bound_files.mirrors, "own_root", fail)
        assert load_seen(put_asking(folder)).symbol("TF_InitPlugin")
    monkeypatch.setattr(origin_folder, "is_privileged", lambda: True)
    assert load_seen(put_asking(folder)).symbol("TF_InitPlugin")
    assert list(temporary.iterdir()) == []


# -- ends of processes -----------------------------------------------------------------------------

_LOAD = """
    import os, sys
    from modular_tf.loading.binding import map_file
    map_file(sys.argv[1], [])
    {own} = os.listdir(os.environ["XDG_RUNTIME_DIR"])
"""
_LOAD_ALONE, _LOAD_BESIDE = _LOAD.format(own="(own,)"), _LOAD.format(own="own")
_IN_FORK = """
    child = os.fork()
    if child == 0:
        map_file(sys.argv[2], [])
        assert len(os.listdir(os.environ["XDG_RUNTIME_DIR"])) == 2
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.listdir(os.environ["XDG_RUNTIME_DIR"]) == [own]
"""


@pytest.fixture
def asking(folder):
    """Return two libraries that ask for their folders."""
    return [put_asking(folder, name) for name in ("a.so", "b.so")]


@pytest.mark.parametrize("code", [_LOAD_ALONE, _LOAD_ALONE + _IN_FORK], ids=["alone", "forking"])
def test_a_process_and_its_child_remove_their_own_folders(code, run_forked, asking, temporary):
    run_forked(code, *asking)

    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("left_at", [1, 2**32], ids=["past", "future"])
def test_what_killed_processes_left_is_removed_later(run_forked, asking, temporary, left_at):
    """Also what they left before a clock was set back."""
    run_forked(_LOAD_ALONE + "    os._exit(0)", *asking)
    (left,) = temporary.iterdir()
    run_forked(_LOAD_BESIDE, *asking)
    assert list(temporary.iterdir()) == [left], "it may belong to a process that has just begun"

    os.utime(left, (left_at, left_at))
    run_forked(_LOAD_ALONE, *asking)

    assert list(temporary.iterdir()) == []


def test_what_living_processes_use_stays(asking, temporary, run_forked):
    load_seen(asking[0])
    (ours,) = temporary.iterdir()
    os.utime(ours, (1, 1))

    run_forked(_LOAD_BESIDE, *asking)

    assert list(temporary.iterdir()) == [ours]
