"""A search path may lead to the current directory: we look where the linker looks.

Each library is mapped by the linker itself, in a process of its own, and found by us.
"""

from __future__ import annotations

import os
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.link_scope import LinkedLibrary, LinkScope, ProcessScope
from modular_tf.discovery.linking.system_libraries import is_relative
from tests.discovery.conftest import FILESYSTEM, make_candidate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from modular_tf.discovery.probe import Prober
    from tests.discovery.conftest import LibraryCompiler
    from tests.fixtures.children import PythonRunner

PLACEHOLDERS = "x" * 200, "y" * 200
RPATH, RUNPATH = 15, 29
MAPPED = """
    import ctypes, sys

    try:
        ctypes.CDLL(sys.argv[1])
    except OSError:
        pass
    print({line.split()[-1] for line in open("/proc/self/maps") if "/libdep.so" in line})
"""


@pytest.fixture
def tree(tmp_path: Path, compile_library: LibraryCompiler, monkeypatch) -> Path:
    """Go to a directory with several libraries of one name around it."""
    places = ("here", "here/sub", "here/$ORIGINAL", "origin", "origin/sub", "absolute", "last")
    for place in places:
        compile_library(f"{place}/libdep.so", f"int dep = {len(place)};", "-Wl,-soname,libdep.so")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def library(tree: Path, compile_library: LibraryCompiler) -> Callable[..., Path]:
    """Make a library that needs the others, with search paths as no linker would write them."""

    def make(*, rpath: str | None = None, runpath: str | None = None) -> Path:
        built = compile_library(
            "origin/libroot.so",
            FILESYSTEM + "extern int dep; int root(void) { return dep; }",
            str(tree / "last" / "libdep.so"),
            f"-Wl,-soname,{PLACEHOLDERS[0]}",
            f"-Wl,--enable-new-dtags,-rpath,{PLACEHOLDERS[1]}",
        )
        built.write_bytes(with_search_paths(built, rpath, runpath))
        return built

    return make


def with_search_paths(path: Path, *values: str | None) -> bytes:
    """Turn the two long strings of a library into DT_RPATH and DT_RUNPATH, or leave them out."""
    content = bytearray(path.read_bytes())
    with ElfFile(str(path)) as elf:
        assert elf.image.dynamic is not None
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


def found_by_us(path: Path) -> set[str]:
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
def test_we_look_where_the_linker_looks(
    search_path: str, tag: str, tree: Path, library: Callable[..., Path], run_python: PythonRunner
) -> None:
    path = library(**{tag: search_path.format(tree=tree)})

    mapped = run_python(f"import os; os.chdir({str(tree / 'here')!r})\n" + dedented(MAPPED), path)

    assert mapped.stdout == f"{found_by_us(path) or set()}\n"


def dedented(code: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in code.splitlines())


@pytest.mark.parametrize("runpath", ["", "/nowhere", ":"])
def test_beside_a_runpath_an_rpath_counts_for_nothing(
    runpath: str, tree: Path, library: Callable[..., Path], run_python: PythonRunner
) -> None:
    path = library(rpath=str(tree / "absolute"), runpath=runpath)

    mapped = run_python(f"import os; os.chdir({str(tree / 'here')!r})\n" + dedented(MAPPED), path)

    assert mapped.stdout == f"{found_by_us(path) or set()}\n"
    assert str(tree / "absolute") not in mapped.stdout


@pytest.mark.parametrize(
    ("directory", "relative"),
    [
        ("", True),
        (".", True),
        ("lib", True),
        ("$LIB", True),
        ("$ORIGINAL/lib", True),
        ("x$ORIGIN", True),
        ("/lib", False),
        ("$ORIGIN", False),
        ("${ORIGIN}/../lib", False),
    ],
)
def test_which_directories_are_relative(directory: str, relative: bool) -> None:
    assert is_relative(directory) is relative


def test_another_current_directory_means_another_library(
    tree: Path, library: Callable[..., Path], prober: Prober, monkeypatch
) -> None:
    """What was found out holds for a directory in which the same is there."""
    path = library(runpath=f":{tree}/absolute")
    plugin = make_candidate(path)

    here = prober.probe(plugin)
    monkeypatch.chdir(tree)
    there = prober.probe(plugin)

    assert [found.path for found in here.libraries] == [str(tree / "here/libdep.so")]
    assert [found.path for found in there.libraries] == [str(tree / "absolute/libdep.so")]
    assert "libdep.so" in here.passed_over
    assert "libdep.so" in there.passed_over


def test_a_current_directory_that_is_gone_holds_nothing(
    tree: Path, library: Callable[..., Path], monkeypatch
) -> None:
    path = library(runpath=f":{tree}/absolute")
    (tree / "gone").mkdir()
    monkeypatch.chdir(tree / "gone")
    (tree / "gone").rmdir()

    assert found_by_us(path) == {str(tree / "absolute/libdep.so")}
    monkeypatch.chdir(tree)  # or the test could not leave
