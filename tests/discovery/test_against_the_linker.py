"""Over generated trees of libraries, we find what the dynamic linker finds, and in its order.

The linker lists what it would map with a library as a program (`ld.so --list`) and runs nothing; we
ask it what it would map with this program and the library. Each tree has a few names, in
many directories, needed and filtered by each other in random ways; a file may have the name, the
SONAME or neither of what it stands for.
"""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from mmap import PAGESIZE
from pathlib import Path
from socket import AF_UNIX, socket
from typing import TYPE_CHECKING, NamedTuple

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.linking.link_check import check_link
from modular_tf.discovery.linking.link_scope import LinkedLibrary, LinkScope, ProcessScope
from modular_tf.errors import ElfError
from tests.discovery.elf_builder import ElfBuilder, on_one_page
from tests.discovery.linker_words import linker_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_, _LINKER, _MACHINE = running_program()
_DYNAMIC_SIZES = 64 + 56 + 32  # p_filesz and p_memsz of the second program header of 64 bits
_OTHER_MACHINE = next(number for number in (62, 183) if number != _MACHINE)
_NAMES = ("liba.so", "libb.so", "libc++.so", "libd.so")
_PLACES = ("one", "one/sub", "two", "three")
_MAPPED = re.compile(r"^\t(?!linux-vdso)(?:\S+ => )?(\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\t(\S+) => not found$", re.MULTILINE)
_FATAL = re.compile(r"error while loading shared libraries: (\S+): cannot open shared object")
_PT_LOAD = 1
_NOT_LOADABLE = 127
_OPTIONAL, _FILTER = 0x7FFFFFFD, 0x7FFFFFFF


class Tree:
    """Libraries below a directory, made of one seed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random: Random = random.Random(seed)
        self.often = self.random.choice([0.4, 0.7, 0.95])  # how often a library is there
        self._filters: list[str] = []
        linker = linker_words()
        self._words = (linker.lib, linker.platform, *linker.subdirectories)
        for place in _PLACES:
            for below in ("", *self._words):
                if not below or self.random.random() < 0.5:
                    self._fill(root / place / below)
        self.main = root / "libmain.so"
        self._write(self.main, "")

    def library_path(self) -> str:
        """Return a value of LD_LIBRARY_PATH."""
        if self.random.random() < 0.5:
            return ""
        directories = [self._directory() for _ in range(self.random.randint(1, 3))]
        return self.random.choice(":;").join(directories)

    def _fill(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _NAMES:
            if self.random.random() < self.often:
                self._write(folder / name, name)
        written = [name for name in _NAMES if (folder / name).is_file()]
        for name in [name for name in _NAMES if name not in written]:
            if written and self.random.random() < 0.2:
                (folder / name).symlink_to(self.random.choice(written))

    def _write(self, path: Path, name: str) -> None:
        choose = self.random
        is_other = choose.random() < 0.05 and path.name != "libmain.so"
        machine = _OTHER_MACHINE if is_other else _MACHINE
        soname = choose.choice([name, name, "", *_NAMES]) if name in _NAMES else ""
        count = choose.randint(0, 3) if path.name != "libmain.so" else 4
        needed = tuple(self._name() for _ in range(count))
        paths = {
            kind: ":".join(self._directory() for _ in range(choose.randint(1, 3)))
            for kind, often in (("rpath", 0.3), ("runpath", 0.3))
            if choose.random() < (0.8 if path.name == "libmain.so" else often)
        }
        filters = tuple(
            (_FILTER if choose.random() < 0.2 else _OPTIONAL, self._filter())
            for _ in range(choose.choice([0, 0, 0, 1, 2]) if len(self._filters) < 20 else 0)
        )
        builder = ElfBuilder(
            machine=machine, soname=soname, needed=needed, paths=paths, filters=filters,
            exports=("x",), undefined=(), weak=(), hash_style="both", flags=6,
            tags={0x6FFFFFFB: 0x800 if choose.random() < 0.1 else None},
        )  # fmt: skip
        path.write_bytes(builder.build())

    def _name(self) -> str:
        choose = self.random.random()
        name = self.random.choice(_NAMES)
        if choose < 0.06:
            path = self.root / self.random.choice(_PLACES) / name
            return str(path) if path.exists() else name
        if choose < 0.08:
            return f"$ORIGIN/{name}"
        if choose < 0.2:
            return self.random.choice(["libresolv.so.2", "libc.so.6", "libm.so.6"])
        return name

    def _filter(self) -> str:
        """Make a library that filters one other: the linker itself fails where it filters more."""
        name = f"libfilter{len(self._filters)}.so"
        self._filters.append(name)
        for place in _PLACES:
            folder = self.root / place / self.random.choice(("", *self._words))
            folder.mkdir(parents=True, exist_ok=True)
            self._write(folder / name, name)
        return name

    def _directory(self) -> str:
        place = self.random.choice(_PLACES)
        return self.random.choice(
            [
                f"{self.root}/{place}",
                f"{self.root}/{place}",
                f"$ORIGIN/{place}",
                "${ORIGIN}",
                f"{self.root}/{place}/$LIB",
                f"{self.root}/{place}/${{PLATFORM}}",
                f"{self.root}/absent",
                "",
                place,
            ]
        )


class Listed(NamedTuple):
    """What is mapped with a library.

    Attributes:
        files: In the order of looking symbols up.
        missing: Names of what is not found.
        fatal: The name without which the linker lists nothing.
    """

    files: list[str]
    missing: list[str]
    fatal: str | None = None


def run_linker(library: Path, library_path: str) -> subprocess.CompletedProcess[str]:
    """Have the linker list what it would map."""
    return subprocess.run(
        [_LINKER, "--list", str(library)],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": library_path} if library_path else {},
    )


def by_linker(library: Path, library_path: str) -> Listed:
    """Return what the linker would map."""
    done = run_linker(library, library_path)
    fatal = _FATAL.search(done.stderr)
    assert done.returncode == 0 or fatal, done
    files = _MAPPED.findall(done.stdout)
    return Listed(list(map(_of_tree, files)), _MISSING.findall(done.stdout), fatal and fatal[1])


def _of_tree(path: str) -> str:
    """Return a path as both tell it, who know the system's linker by different links."""
    return os.path.realpath(path) if path.startswith("/lib") else str(Path.cwd() / path)


def by_us(tree: Tree, library_path: str) -> Listed:
    """Return what we find."""
    library_path = re.sub(r"\$ORIGIN|\$\{ORIGIN\}", str(tree.root), library_path)
    with (
        closing(ProcessScope(library_path=library_path)) as process,
        ElfFile(str(tree.main)) as elf,
    ):
        root = LinkedLibrary("", elf, is_companion=True)
        with closing(LinkScope(root, process)) as scope:
            missing = [one.name for one in scope.missing]
            return Listed([_of_tree(one.elf.path) for one in scope.others], missing)


@pytest.mark.parametrize("seed", range(120))
def test_we_find_what_the_linker_finds(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path, seed)
    library_path = tree.library_path()
    monkeypatch.chdir(tmp_path)

    listed, found = by_linker(tree.main, library_path), by_us(tree, library_path)

    if listed.fatal is None:
        own = [path for path in listed.files if path not in _of_program()]
        assert found == listed._replace(files=own)
    else:
        missing = [*found.missing, *_of_program()]
        assert Path(listed.fatal).name in [Path(name).name for name in missing]


@cache
def _of_program() -> frozenset[str]:
    """Return what the program itself is linked with, which is mapped already."""
    with closing(ProcessScope()) as process:
        return frozenset(map(_of_tree, process.paths))


def _builder(needed: str) -> ElfBuilder:
    return ElfBuilder(
        machine=_MACHINE, needed=(needed,), exports=("x",), undefined=(), weak=(),
        hash_style="both", flags=6, soname="",
    )  # fmt: skip


def _made(needed: str) -> bytearray:
    return bytearray(_builder(needed).build())


def _on_one_page(needed: str, *, n_bytes: int, page: int) -> bytes:
    shown = _builder("libshown.so" if page else needed)
    return on_one_page(shown, _builder(needed), n_bytes=n_bytes, page=page)


def _short_dynamic_segment(needed: str) -> bytes:
    """The entries of PT_DYNAMIC go on behind its p_filesz, and the first one is DT_NEEDED."""
    data = _made(needed)
    struct.pack_into("<QQ", data, _DYNAMIC_SIZES, 8, 8)
    return bytes(data)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_short_dynamic_segment, id="entries behind the dynamic segment"),
        pytest.param(partial(_on_one_page, n_bytes=8, page=1), id="other bytes"),
        pytest.param(partial(_on_one_page, n_bytes=0, page=1), id="empty segment"),
        pytest.param(partial(_on_one_page, n_bytes=8, page=0), id="same bytes"),
    ],
)
def test_the_linker_maps_no_name_that_we_do_not_read(
    make: Callable[[str], bytes], tmp_path: Path
) -> None:
    path, needed = tmp_path / "libmade.so", tmp_path / "libfound.so"
    path.write_bytes(make(needed.name))
    needed.write_bytes(_made("libc.so.6"))
    assert str(needed) in by_linker(path, str(tmp_path)).files

    refusal = "two segments have different bytes of the file on one page of memory"
    assert _needed_or_refusal(path) in {needed.name, refusal}


def _needed_or_refusal(path: Path) -> str:
    try:
        with ElfFile(str(path)) as elf:
            return " ".join(elf.dynamic.needed)
    except ElfError as error:
        return error.message.removeprefix("libmade.so is cut off or damaged: ").partition(", at")[0]


@pytest.mark.parametrize("n_bytes", [8, 0])
@pytest.mark.parametrize("shift", [0, 8, PAGESIZE // 2])
def test_the_linker_maps_no_segment_between_pages(shift: int, n_bytes: int, tmp_path: Path) -> None:
    """`strip` leaves such segments in some libraries that `patchelf` has changed."""
    moved = (_PT_LOAD, PAGESIZE + shift, 4 * PAGESIZE, n_bytes)
    path = tmp_path / "libmade.so"
    made = replace(_builder("libc.so.6"), segments=(moved,))
    path.write_bytes(made.build().ljust(3 * PAGESIZE, b"\0"))

    linker = run_linker(path, "")

    assert ("address/offset not" in linker.stderr) == bool(shift)
    segment = f"the segment at address {4 * PAGESIZE:#x}"
    expected = f"{segment} does not begin at the same place of a page"
    assert _needed_or_refusal(path) == (expected if shift else "libc.so.6")


def _bind(path: Path) -> None:
    with socket(AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(lambda path: path.mkdir(), id="directory"),
        pytest.param(lambda path: path.symlink_to("."), id="link to a directory"),
        pytest.param(lambda path: path.symlink_to("/dev/null"), id="device"),
        pytest.param(lambda path: path.symlink_to("/dev/null/x"), id="link below a file"),
        pytest.param(lambda path: path.symlink_to(path.name), id="link to itself"),
        pytest.param(_bind, id="socket"),
    ],
)
def test_what_is_no_file_is_passed_over_by_neither(
    place: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    place(Path("one/libfound.so"))
    (tmp_path / "two/libfound.so").write_bytes(_made("libc.so.6"))
    made = tmp_path / "libmade.so"
    made.write_bytes(_made("libfound.so"))
    library_path = f"{tmp_path}/one:{tmp_path}/two"
    assert run_linker(made, library_path).returncode == _NOT_LOADABLE

    with (
        ElfFile(str(made)) as elf,
        closing(ProcessScope(library_path=library_path)) as process,
    ):
        found = check_link(elf, HostExports(), process)

    assert not found.libraries
    (problem,) = found.problems
    assert problem.rule_id in {"LD-002", "LD-003"}
    assert problem.path == f"{tmp_path}/one/libfound.so"


@pytest.mark.parametrize(
    "make_absent",
    [
        pytest.param(lambda path: path.symlink_to("nowhere"), id="link to nothing"),
        pytest.param(lambda path: path.parent.rmdir() or path.parent.write_bytes(b""), id="file"),
    ],
)
def test_what_is_absent_is_passed_over_by_both(
    make_absent: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    make_absent(tmp_path / "one/libfound.so")
    (tmp_path / "two/libfound.so").write_bytes(_made("libc.so.6"))
    made = tmp_path / "libmade.so"
    made.write_bytes(_made("libfound.so"))
    library_path = f"{tmp_path}/one:{tmp_path}/two"
    assert f"{tmp_path}/two/libfound.so" in by_linker(made, library_path).files

    with (
        ElfFile(str(made)) as elf,
        closing(ProcessScope(library_path=library_path)) as process,
    ):
        found = check_link(elf, HostExports(), process)

    assert f"{tmp_path}/two/libfound.so" in [library.path for library in found.libraries]
    assert not found.problems


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"no library", id="text"),
        pytest.param(b"", id="empty"),
        pytest.param(bytes(_made("libc.so.6")[:-40]), id="cut off"),  # the linker maps it
    ],
)
def test_a_damaged_library_is_passed_over_by_neither(damage: bytes, tmp_path: Path) -> None:
    for folder, content in (("one", damage), ("two", bytes(_made("libc.so.6")))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "libfound.so").write_bytes(content)
    made = tmp_path / "libmade.so"
    made.write_bytes(_made("libfound.so"))
    library_path = f"{tmp_path}/one:{tmp_path}/two"
    listed = run_linker(made, library_path)
    assert f"{tmp_path}/one/libfound.so" in listed.stdout + listed.stderr

    with (
        ElfFile(str(made)) as elf,
        closing(ProcessScope(library_path=library_path)) as process,
    ):
        found = check_link(elf, HostExports(), process)

    assert not found.libraries
    (problem,) = found.problems
    assert problem.rule_id in {"LD-004", "LD-005"}
    assert problem.path == f"{tmp_path}/one/libfound.so"
