"""Needed libraries are found where the linker finds them."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.library_search import LibrarySearch, LinkedLibrary
from modular_tf.discovery.linking.link_scope import LinkScope, MissingLibrary, ProcessScope
from modular_tf.discovery.linking.linker_cache import read_linker_cache
from modular_tf.discovery.linking.linker_properties import LinkerProperties, running_linker
from modular_tf.discovery.linking.system_libraries import default_library_directories, is_of_system
from modular_tf.errors import ElfError
from tests.discovery.elf_builder import ElfBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.discovery.conftest import LibraryCompiler
    from tests.fixtures.children import PythonRunner

_TARGET = (64, "<", 62)


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Callable[..., LinkedLibrary]]:
    """Write a library that points to directories, and open it."""
    opened = []

    def write(name: str, *, loaded_by: LinkedLibrary | None = None, **paths: str) -> LinkedLibrary:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(ElfBuilder(needed=(), paths=paths).build())
        elf = ElfFile(str(path))
        opened.append(elf)
        return LinkedLibrary(path.name, elf, loaded_by, is_companion=True)

    yield write
    for elf in opened:
        elf.close()


def library(path: Path, machine: int = 62) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ElfBuilder(machine=machine, soname=path.name, needed=()).build())
    return path


def search(**options: object) -> LibrarySearch:
    settings = {"cache": {}, "default_directories": ("/nowhere",)} | options
    return LibrarySearch(_TARGET, **settings)  # type: ignore[arg-type]


def found(finder: LibrarySearch, name: str, needed_by: LinkedLibrary) -> tuple[str, bool] | None:
    result = finder.find(name, needed_by)
    if result is None:
        return None
    result.elf.close()
    return result.elf.path, result.is_companion


@pytest.mark.parametrize("kind", ["rpath", "runpath"])
@pytest.mark.parametrize("template", ["$ORIGIN/deps", "${ORIGIN}/deps", "/x:$ORIGIN/../a/deps"])
def test_the_librarys_own_paths(
    tmp_path: Path, linked: Callable[..., LinkedLibrary], kind: str, template: str
) -> None:
    dep = library(tmp_path / "a/deps/libdep.so")
    root = linked("a/libroot.so", **{kind: template})

    result = found(search(), "libdep.so", root)

    assert result is not None
    assert dep.samefile(result[0])
    assert result[1]


def test_origin_follows_the_path_not_the_link(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    linked("real/libroot.so", runpath="$ORIGIN")
    dep = library(tmp_path / "linked/libdep.so")
    (tmp_path / "linked/libroot.so").symlink_to(tmp_path / "real/libroot.so")

    with ElfFile(str(tmp_path / "linked/libroot.so")) as elf:
        root = LinkedLibrary("libroot.so", elf, None, is_companion=True)
        assert found(search(), "libdep.so", root) == (str(dep), True)


def test_where_the_linker_cannot_be_asked_lib_stands_for_each_custom(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    dep = library(tmp_path / "lib64/libdep.so")
    root = linked("libroot.so", runpath="$ORIGIN/$LIB")
    other = search(properties=LinkerProperties(lib="lib/other"))

    assert found(search(properties=LinkerProperties()), "libdep.so", root) == (str(dep), True)
    assert found(other, "libdep.so", root) is None


def test_a_library_in_a_directory_of_the_systems_is_no_companion(
    linked: Callable[..., LinkedLibrary],
) -> None:
    path = Path(read_linker_cache()["libresolv.so.2"][0])
    finder = search(library_path=str(path.parent))

    assert found(finder, "libresolv.so.2", linked("libroot.so")) == (str(path), False)


def test_of_the_cache_counts_what_is_for_this_processor(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    levels = ("v4", "v3", "v2")
    paths = [library(tmp_path / f"glibc-hwcaps/{level}/libdep.so") for level in levels]
    paths.append(library(tmp_path / "libdep.so"))
    cache = {"libdep.so": tuple(map(str, paths))}
    properties = LinkerProperties(("glibc-hwcaps/v2", "glibc-hwcaps/v3"))
    root = linked("libroot.so")

    finder = search(cache=cache, properties=properties)
    assert found(finder, "libdep.so", root) == (str(paths[2]), False)
    finder = search(cache=cache, properties=LinkerProperties())
    assert found(finder, "libdep.so", root) == (str(paths[3]), False)


def test_the_linker_is_asked_once_and_its_tunables_count(
    run_python: PythonRunner,
) -> None:
    code = """
        import subprocess
        from modular_tf.discovery.linking.linker_properties import running_linker

        known = running_linker()
        subprocess.run = None
        assert running_linker() is known
        print(*known.subdirectories)
    """
    usual = run_python(code).stdout.split()
    less = run_python(code, env={"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-SSSE3,-AVX2,-SSE4_1"}).stdout

    assert usual == list(running_linker().subdirectories)
    assert less.split() != usual


def test_a_linker_that_cannot_be_asked_now_is_asked_again(run_python: PythonRunner) -> None:
    """No process can be started at the moment, or it does not end."""
    code = """
        import subprocess
        from modular_tf.discovery.linking.linker_properties import LinkerProperties, running_linker
        from modular_tf.rules.shortage import ShortageError

        start = subprocess.run
        for error in (BlockingIOError(11, "no process"), subprocess.TimeoutExpired("x", 1)):
            def fail(*_, **__):
                raise error
            subprocess.run = fail
            try:
                running_linker()
            except ShortageError:
                continue
            raise AssertionError(error)
        subprocess.run = start
        assert running_linker() != LinkerProperties()
    """
    run_python(code)


def test_order_of_places(tmp_path: Path, linked: Callable[..., LinkedLibrary]) -> None:
    places = {name: library(tmp_path / name / "libdep.so") for name in "abcd"}
    options = {
        "library_path": str(tmp_path / "b"),
        "cache": {"libdep.so": (str(places["c"]),)},
        "default_directories": (str(tmp_path / "d"),),
    }
    by_rpath = linked("libr.so", rpath="$ORIGIN/a")
    by_runpath = linked("libru.so", runpath="$ORIGIN/a")
    plain = linked("libplain.so")

    assert found(search(**options), "libdep.so", by_rpath) == (str(places["a"]), True)
    assert found(search(**options), "libdep.so", by_runpath) == (str(places["b"]), True)
    places["b"].unlink()
    assert found(search(**options), "libdep.so", by_runpath) == (str(places["a"]), True)
    assert found(search(**options), "libdep.so", plain) == (str(places["c"]), False)
    places["c"].unlink()
    assert found(search(**options), "libdep.so", plain) == (str(places["d"]), False)
    places["d"].unlink()
    assert found(search(**options), "libdep.so", plain) is None


def test_rpath_is_inherited_and_runpath_is_not(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    dep = library(tmp_path / "deps/libdep.so")
    by_rpath = linked("one/libr.so", rpath="$ORIGIN/../deps")
    by_runpath = linked("one/libru.so", runpath="$ORIGIN/../deps")

    child = linked("two/libchild.so", loaded_by=by_rpath)
    other = linked("two/libother.so", loaded_by=by_runpath)
    closed = linked("two/libclosed.so", loaded_by=by_rpath, runpath="/nowhere")

    inherited = found(search(), "libdep.so", child)
    assert inherited is not None
    assert dep.samefile(inherited[0])
    assert found(search(), "libdep.so", other) is None
    assert found(search(), "libdep.so", closed) is None


def test_files_for_other_machines_are_passed_over_and_damaged_ones_are_not(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    library(tmp_path / "a/libdep.so", machine=183)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/libdep.so").write_text("INPUT(libdep.so.1)")
    good = library(tmp_path / "c/libdep.so")
    root = linked("libroot.so")
    path = ":".join(str(tmp_path / name) for name in "acb")
    damaged_first = ":".join(str(tmp_path / name) for name in "abc")

    assert found(search(library_path=path), "libdep.so", root) == (str(good), True)
    assert found(search(library_path=path.replace(":", ";")), "libdep.so", root) is not None
    with pytest.raises(ElfError, match="it is a linker script") as caught:
        found(search(library_path=damaged_first), "libdep.so", root)
    assert caught.value.path == str(tmp_path / "b/libdep.so")


def test_a_damaged_file_for_another_machine_is_passed_over(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    """The linker looks at the machine before it looks at segments."""
    other = library(tmp_path / "a/libdep.so", machine=183)
    other.write_bytes(other.read_bytes()[:100])
    good = library(tmp_path / "b/libdep.so")
    path = ":".join(str(tmp_path / name) for name in "ab")

    assert found(search(library_path=path), "libdep.so", linked("libroot.so")) == (str(good), True)


def test_a_name_with_a_slash_is_a_path(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    dep = library(tmp_path / "deps/libdep.so")
    root = linked("libroot.so")

    assert found(search(), str(dep), root) == (str(dep), True)
    assert found(search(), "$ORIGIN/deps/libdep.so", root) == (str(dep), True)


def test_a_path_that_leads_up_again_is_not_the_systems() -> None:
    place = f"{default_library_directories()[0]}/glibc-hwcaps/x86-64-v3"

    assert is_of_system(f"{place}/libx.so")
    assert not is_of_system(f"{place}/../../../../home/libx.so")


def test_the_cache_agrees_with_ldconfig() -> None:
    tool = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    assert tool is not None
    printed = subprocess.run([tool, "-p"], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^\t(\S+) \(.*\) => (\S+)$", printed, re.MULTILINE)

    cache = read_linker_cache()

    assert lines
    assert sorted(lines) == sorted((name, path) for name, paths in cache.items() for path in paths)


def _cache_bytes(entries: list[tuple[str, str]], *, old: int | None = None) -> bytes:
    strings, rows, head = b"", b"", 48 + 24 * len(entries)
    for name, path in entries:
        at = head + len(strings)
        rows += struct.pack("=iIIIQ", 0x303, at, at + len(name) + 1, 0, 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    magic = b"glibc-ld.so.cache1.1"
    new = struct.pack("=20sIIB3xI12x", magic, len(entries), len(strings), 2, 0) + rows + strings
    if old is None:
        return new
    front = b"ld.so-1.7.0\0" + struct.pack("=I", old) + bytes(12 * old)
    return front + bytes(-len(front) % 8) + new


@pytest.mark.parametrize("old", [None, 0, 1, 2, 3])
def test_both_formats_of_the_cache(tmp_path: Path, old: int | None) -> None:
    entries = [("liba.so", "/one/liba.so"), ("libb.so", "/b"), ("liba.so", "/two/liba.so")]
    path = tmp_path / "cache"
    path.write_bytes(_cache_bytes(entries, old=old))

    cache = read_linker_cache(str(path))

    assert cache == {"liba.so": ("/one/liba.so", "/two/liba.so"), "libb.so": ("/b",)}


def test_a_damaged_cache_counts_as_none(tmp_path: Path) -> None:
    whole = _cache_bytes([("liba.so", "/one/liba.so")], old=1)
    path = tmp_path / "cache"

    assert read_linker_cache(str(path)) == {}
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert read_linker_cache(str(path)) == {}


def test_this_process_offers_its_libraries() -> None:
    process = ProcessScope()
    try:
        assert process.target == _TARGET or process.machine != "x86-64"
        assert process.library("libc.so.6") is not None
        assert process.missing == []
    finally:
        process.close()


def test_a_scope_takes_each_library_once_and_ends_in_circles(
    compile_library: LibraryCompiler, tmp_path: Path
) -> None:
    compile_library("liba.so", "int a;", "-Wl,-soname,liba.so")
    here = ("-L" + str(tmp_path), "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN")
    compile_library("libb.so", "int b;", *here, "-la", "-Wl,-soname,libb.so")
    compile_library("liba.so", "int a;", *here, "-lb", "-Wl,-soname,liba.so")
    root_path = compile_library("libroot.so", "int r;", *here, "-la", "-lb")
    (tmp_path / "libb.so").rename(tmp_path / "hidden")
    process = ProcessScope()

    try:
        with ElfFile(str(root_path)) as elf:
            root = LinkedLibrary("libroot.so", elf, process.libraries[0], is_companion=True)
            scope = LinkScope(root, process.search, outer=process)
            assert scope.missing == [MissingLibrary("libb.so", "libroot.so")]
            scope.close()
            (tmp_path / "hidden").rename(tmp_path / "libb.so")
            scope = LinkScope(root, process.search, outer=process)
            assert [library.name for library in scope.libraries[1:]] == ["liba.so", "libb.so"]
            assert scope.missing == []
            scope.close()
            scope = LinkScope(root, process.search, outer=process, offered={"liba.so", "libb.so"})
            assert len(scope.libraries) == 1
    finally:
        process.close()


def test_libraries_of_the_system_are_opened_once(
    tmp_path: Path, linked: Callable[..., LinkedLibrary]
) -> None:
    library(tmp_path / "system/libdep.so")
    finder = search(default_directories=(str(tmp_path / "system"),))
    one, other = (finder.find("libdep.so", linked(name)) for name in ("liba.so", "libb.so"))

    assert one is not None
    assert other is not None
    assert one.elf is other.elf
    finder.close()
    library(tmp_path / "system/libdep.so")
    assert found(finder, "libdep.so", linked("libc.so")) is not None
