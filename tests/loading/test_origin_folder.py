"""Libraries that are mapped by descriptor find what lies beside their files."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from modular_tf.discovery.file_identity import SETTLED_AFTER_NS, see
from modular_tf.loading import origin_folder
from modular_tf.loading.binding import map_file
from modular_tf.loading.bound_files import bound_files
from tests.fixtures.compiler import compile_object, link_library

SOURCE = Path(__file__).with_name("neighbour_plugin.c")


def built(name, *macros, options=()):
    return link_library(name, [compile_object(SOURCE, macros)], options)


@pytest.fixture
def folder(tmp_path):
    """Return a folder for libraries."""
    path = tmp_path / "folder"
    path.mkdir()
    return path


@pytest.fixture
def put():
    """Put a library into a folder, with bytes of its own."""

    def copy(library, folder):
        folder.mkdir(exist_ok=True)
        place = Path(shutil.copy(library, folder / library.name))
        with place.open("ab") as stream:  # where no linker looks
            stream.write(os.urandom(16))
        return place

    return copy


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Let folders be made in a directory of the test."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    bound_files.mirrors.remove()
    yield path
    bound_files.mirrors.remove()


def load(path, *companions, settled=False):
    seen = [see(str(file)) for file in (path, *companions)]
    if settled:
        changed = [file.identity.ctime_ns + SETTLED_AFTER_NS + 1 for file in seen]
        seen = [s._replace(seen_ns=at, sha256=None) for s, at in zip(seen, changed, strict=True)]
    return map_file(str(path), [str(file) for file in companions], checked=seen)


def finds_neighbour(library):
    function = ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("find_neighbour"))
    return bool(function())


NEIGHBOUR = "libneighbour.so"
RUNPATH = "-Wl,--enable-new-dtags,-rpath,"
RPATH = "-Wl,--disable-new-dtags,-rpath,"
WAYS = {
    "runpath": ("ASKS_LINKER", [RUNPATH + "$ORIGIN"], "."),
    "rpath": ("ASKS_LINKER", [RPATH + "${ORIGIN}"], "."),
    "below": ("ASKS_LINKER", [RUNPATH + "$ORIGIN/libs"], "libs"),
    "above": ("ASKS_LINKER", [RUNPATH + "$ORIGIN/.."], ".."),
    "beside its folder": ("ASKS_LINKER", [RUNPATH + "/nowhere:$ORIGIN/../libs"], "../libs"),
    "dladdr": ("ASKS_DLADDR", [], "."),
}


@pytest.mark.parametrize("settled", [True, False], ids=["file", "copy"])
@pytest.mark.parametrize("way", WAYS)
def test_a_neighbour_is_found(way, settled, folder, put):
    macro, options, place = WAYS[way]
    put(built(NEIGHBOUR), folder / place)
    library = put(built("libx.so", macro, options=options), folder)

    assert finds_neighbour(load(library, settled=settled))


@pytest.mark.parametrize("settled", [True, False], ids=["file", "copy"])
def test_a_companion_without_a_name_of_its_own_is_mapped_once(settled, folder, put):
    """It is needed by its file's name, which the dynamic linker has to look for."""
    neighbour = built(NEIGHBOUR)
    options = [str(neighbour), RUNPATH + "$ORIGIN"]
    companion = put(neighbour, folder)
    library = put(built("libx.so", "CALLS", options=[*options]), folder)
    before = mappings_of(companion)

    assert finds_neighbour(load(library, companion, settled=settled))
    assert before == set()
    assert len(mappings_of(companion)) == 1


def mappings_of(file):
    """Return the inodes that are mapped of a file or a copy of it."""
    found = set()
    for line in os.fsdecode(Path("/proc/self/maps").read_bytes()).splitlines():
        _, _, _, device, inode, *path = line.split(maxsplit=5)
        if path and path[0].split(" (deleted)")[0] in (str(file), f"/memfd:{file.name}"):
            found.add((device, inode))
    return found


def test_a_library_that_does_not_ask_needs_no_folder(folder, put, temporary):
    load(put(built(NEIGHBOUR), folder))

    assert list(temporary.iterdir()) == []


def test_a_search_path_that_leads_nowhere_needs_no_folder(folder, put, temporary):
    options = [RUNPATH + "$ORIGIN/../../../_solib_local", RUNPATH + "$ORIGIN/x.runfiles"]
    load(put(built("libx.so", "ASKS_LINKER", options=options), folder))

    assert list(temporary.iterdir()) == []


def test_a_new_library_of_the_same_name_is_another(folder, put):
    put(built(NEIGHBOUR), folder)
    library = built("libx.so", "ASKS_LINKER", options=[RUNPATH + "$ORIGIN"])
    first = load(put(library, folder))
    (folder / library.name).unlink()
    second = load(put(library, folder))

    assert first.symbol("find_neighbour") != second.symbol("find_neighbour")
    assert finds_neighbour(first)
    assert finds_neighbour(second)


def test_libraries_of_one_folder_share_theirs(folder, put, temporary):
    put(built(NEIGHBOUR), folder)
    for name in ("liba.so", "libb.so", "libc.so"):
        library = put(built(name, "ASKS_LINKER", options=[RUNPATH + "$ORIGIN"]), folder)
        assert finds_neighbour(load(library))

    (own,) = temporary.iterdir()
    assert len(list(own.iterdir())) == len({"the lock", "one folder"})
    assert own.stat().st_mode & 0o777 == 0o700


def test_without_a_place_for_folders_libraries_are_mapped_all_the_same(folder, put, monkeypatch):
    monkeypatch.setattr(bound_files.mirrors, "own_root", failing)
    library = put(built("libx.so", "ASKS_LINKER", options=[RUNPATH + "$ORIGIN"]), folder)

    assert load(library).symbol("TF_InitPlugin")


def failing():
    raise OSError(28, "No space left on device")


def test_a_privileged_process_makes_no_folders(folder, put, monkeypatch, temporary):
    monkeypatch.setattr(origin_folder, "is_privileged", lambda: True)
    library = put(built("libx.so", "ASKS_LINKER", options=[RUNPATH + "$ORIGIN"]), folder)

    assert load(library).symbol("TF_InitPlugin")
    assert list(temporary.iterdir()) == []


_LOAD = """
    import os, sys
    from modular_tf.loading.binding import map_file
    map_file(sys.argv[1], [])
    (own,) = os.listdir(os.environ["XDG_RUNTIME_DIR"])
"""
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
def asking(folder, put):
    """Return two libraries that ask for their folders."""
    options = [RUNPATH + "$ORIGIN"]
    return [put(built(name, "ASKS_LINKER", options=options), folder) for name in ("a.so", "b.so")]


def test_folders_are_removed_when_the_process_ends(run_python, asking, temporary):
    run_python(_LOAD, *asking)

    assert list(temporary.iterdir()) == []


def test_a_forked_child_has_folders_of_its_own(run_python, asking, temporary):
    run_python(_LOAD + _IN_FORK, *asking)

    assert list(temporary.iterdir()) == []


def test_what_killed_processes_left_is_removed_later(run_python, asking, temporary):
    run_python(_LOAD + "    os._exit(0)", *asking)
    (left,) = temporary.iterdir()
    run_python(_LOAD.replace("(own,) =", "own ="), *asking)
    assert list(temporary.iterdir()) == [left], "it may belong to a process that has just begun"

    os.utime(left, (1, 1))
    run_python(_LOAD, *asking)

    assert list(temporary.iterdir()) == []


def test_what_living_processes_use_stays(asking, temporary, run_python):
    load(asking[0])
    (ours,) = temporary.iterdir()
    os.utime(ours, (1, 1))

    run_python(_LOAD.replace("(own,) =", "own ="), *asking)

    assert list(temporary.iterdir()) == [ours]


def test_first_contact_leaves_no_folders(folder, put, temporary):
    from modular_tf.service.configuration import Config
    from modular_tf.service.service import PluginService

    put(built(NEIGHBOUR), folder)
    library = put(built("libx.so", "ASKS_DLADDR"), folder)
    config = Config(first_contact="always", load="lazy")
    with PluginService(plugin_paths=[library], bundled=False, config=config) as service:
        (record,) = service.load().plugins

    assert record.reason is not None
    assert record.reason.rule == "FS-001", "it was tried, and found to register nothing"
    assert list(temporary.iterdir()) == []
