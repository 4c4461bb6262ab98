"""A search path may lead to the current directory: we look where the linker looks.

Each library is mapped by the linker itself, in a process of its own, and found by us.
"""

import os
import struct
from contextlib import closing

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.link_scope import LinkedLibrary, LinkScope, ProcessScope
from modular_tf.discovery.linking.system_libraries import is_relative
from tests.discovery.conftest import FILESYSTEM, compile_into, make_candidate

PLACEHOLDERS = "x" * 200, "y" * 200
RPATH, RUNPATH = 15, 29
PLACES = ("here", "here/sub", "here/$ORIGINAL", "origin", "origin/sub", "absolute", "last")
MAP = """
    import ctypes, os, sys
    os.chdir(sys.argv[2])
    try:
        ctypes.CDLL(sys.argv[1])
    except OSError:
        pass
    print({line.split()[-1] for line in open("/proc/self/maps") if "/libdep.so" in line})
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Make a directory with several libraries of one name, and a library that needs them."""
    tree = tmp_path_factory.mktemp("tree")
    for place in PLACES:
        text = f"int dep = {len(place)};"
        compile_into(tree, f"{place}/libdep.so", text, "-Wl,-soname,libdep.so")
    root = compile_into(
        tree,
        "origin/libroot.so",
        FILESYSTEM + "extern int dep; int root(void) { return dep; }",
        str(tree / "last" / "libdep.so"),
        f"-Wl,-soname,{PLACEHOLDERS[0]}",
        f"-Wl,--enable-new-dtags,-rpath,{PLACEHOLDERS[1]}",
    )
    return tree, root.read_bytes()


@pytest.fixture
def tree(built, monkeypatch):
    monkeypatch.chdir(built[0] / "here")
    return built[0]


@pytest.fixture
def library(tree, built):
    """Give the library search paths as no linker would write them."""

    def make(*, rpath=None, runpath=None):
        path = tree / "origin" / "libroot.so"
        path.write_bytes(built[1])
        path.write_bytes(with_search_paths(path, rpath, runpath))
        return path

    return make


def with_search_paths(path, *values):
    """Turn the two long strings of a library into DT_RPATH and DT_RUNPATH, or leave them out."""
    content = bytearray(path.read_bytes())
    with ElfFile(str(path)) as elf:
        at = elf.image.dynamic[0]
    for placeholder, tag, value in zip(PLACEHOLDERS, (RPATH, RUNPATH), values, strict=True):
        start = content.index(placeholder.encode())
        text = (value or "").encode().ljust(len(placeholder), b"\0")
        content[start : start + len(placeholder)] = text
        old = 14 if tag == RPATH else RUNPATH
        entry = at
        while struct.unpack_from("<q", content, entry) != (old,):
            entry += 16
        ignored = 0x6FFFFEF8  # a tag of the system's own that the linker does not know
        struct.pack_into("<q", content, entry, ignored if value is None else tag)
    return bytes(content)


def found_by_us(path):
    with closing(ProcessScope()) as process, ElfFile(str(path)) as elf:
        root = LinkedLibrary("libroot.so", elf, is_companion=True)
        with closing(LinkScope(root, process)) as scope:
            return {os.path.realpath(found.elf.path) for found in scope.others}


SEARCH_PATHS = [
    ":",
    "::",
    "/nowhere:",
    ":/nowhere",
    ":{tree}/absolute",
    "/nowhere::{tree}/absolute",
    "{tree}/absolute:",
    ".",
    "./",
    "sub",
    "sub/../sub",
    "nowhere:sub:{tree}/absolute",
    "../absolute",
    "$ORIGIN",
    "${{ORIGIN}}",
    "${{ORIGIN}}/sub",
    "$ORIGIN/sub:",
    ":$ORIGIN/sub",
    "$ORIGINAL",
    "${{ORIGINAL}}:{tree}/absolute",
    "$ORIGIN_:{tree}/absolute",
    "$NOTHING:$ORIGIN",
    "",
]


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
@pytest.mark.parametrize("search_path", SEARCH_PATHS)
def test_we_look_where_the_linker_looks(search_path, tag, tree, library, run_forked):
    path = library(**{tag: search_path.format(tree=tree)})

    mapped = run_forked(MAP, path, tree / "here")

    assert mapped.stdout == f"{found_by_us(path) or set()}\n"


@pytest.mark.parametrize("runpath", ["", "/nowhere", ":"])
def test_beside_a_runpath_an_rpath_counts_for_nothing(runpath, tree, library, run_forked):
    path = library(rpath=str(tree / "absolute"), runpath=runpath)

    mapped = run_forked(MAP, path, tree / "here")

    assert mapped.stdout == f"{found_by_us(path) or set()}\n"
    assert str(tree / "absolute") not in mapped.stdout


@pytest.mark.parametrize(
    ("directories", "relative"),
    [
        (["", ".", "lib", "$LIB", "$ORIGINAL/lib", "x$ORIGIN"], True),
        (["/lib", "$ORIGIN", "${ORIGIN}/../lib"], False),
    ],
)
def test_which_directories_are_relative(directories, relative):
    assert {is_relative(directory) for directory in directories} == {relative}


def test_another_current_directory_means_another_library(tree, library, prober, monkeypatch):
    """What was found out holds for a directory in which the same is there."""
    plugin = make_candidate(library(runpath=f":{tree}/absolute"))

    for directory, found in ((tree / "here", "here"), (tree, "absolute")):
        monkeypatch.chdir(directory)
        result = prober.probe(plugin)
        assert [each.path for each in result.libraries] == [str(tree / found / "libdep.so")]
        assert "libdep.so" in result.passed_over


def test_a_current_directory_that_is_gone_holds_nothing(tree, library, monkeypatch):
    path = library(runpath=f":{tree}/absolute")
    (tree / "gone").mkdir()
    monkeypatch.chdir(tree / "gone")
    (tree / "gone").rmdir()

    assert found_by_us(path) == {str(tree / "absolute/libdep.so")}
    monkeypatch.chdir(tree)  # or the test could not leave
