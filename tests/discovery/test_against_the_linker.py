"""Over generated trees of libraries, we find what the dynamic linker finds, and in its order.

The linker lists what it would map with a library as a program (`ld.so --list`) and runs nothing; we
ask it what it would map with this program and the library. Each tree has a few names, in
many directories, needed and filtered by each other in random ways; a file may have the name, the
SONAME or neither of what it stands for.
"""

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
from typing import NamedTuple

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.linking.link_check import check_link
from modular_tf.discovery.linking.link_scope import LinkedLibrary, LinkScope, ProcessScope
from modular_tf.errors import ElfError
from tests.discovery.elf_builder import ElfBuilder, on_one_page
from tests.discovery.linker_words import linker_words
from tests.fixtures.matrices import sampled

_, _LINKER, _MACHINE = running_program()
_DYNAMIC_SIZES = 64 + 56 + 32  # p_filesz and p_memsz of the second program header of 64 bits
_OTHER_MACHINE = next(number for number in (62, 183) if number != _MACHINE)
_NAMES = ("liba.so", "libb.so", "libc++.so", "libd.so")
_PLACES = ("one", "one/sub", "two", "three", "$ORIGINAL")
_MAPPED = re.compile(r"^\t(?!linux-vdso)(?:\S+ => )?(\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\t(\S+) => not found$", re.MULTILINE)
_FATAL = re.compile(r"error while loading shared libraries: (\S+): cannot open shared object")
_PT_LOAD = 1
_NOT_LOADABLE = 127
_OPTIONAL, _FILTER = 0x7FFFFFFD, 0x7FFFFFFF


class Tree:
    """Libraries below a directory, made of one seed."""

    def __init__(self, root, seed):
        self.root = root
        self.random = random.Random(seed)
        self.often = self.random.choice([0.4, 0.7, 0.95])  # how often a library is there
        self._filters = []
        linker = linker_words()
        self._words = (linker.lib, linker.platform, *linker.subdirectories)
        for place in _PLACES:
            for below in ("", *self._words):
                if not below or self.random.random() < 0.5:
                    self._fill(root / place / below)
        self.main = root / "libmain.so"
        self._write(self.main, "")

    def library_path(self):
        """Return a value of LD_LIBRARY_PATH."""
        if self.random.random() < 0.5:
            return ""
        directories = [self._directory() for _ in range(self.random.randint(1, 3))]
        return self.random.choice(":;").join(directories)

    def _fill(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in _NAMES:
            if self.random.random() < self.often:
                self._write(folder / name, name)
        written = [name for name in _NAMES if (folder / name).is_file()]
        for name in [name for name in _NAMES if name not in written]:
            if written and self.random.random() < 0.2:
                (folder / name).symlink_to(self.random.choice(written))

    def _write(self, path, name):
        choose = self.random
        is_main = path.name == "libmain.so"
        is_other = choose.random() < 0.05 and not is_main
        count = choose.randint(0, 3) if not is_main else 4
        made = ElfBuilder(
            machine=_OTHER_MACHINE if is_other else _MACHINE,
            soname=choose.choice([name, name, "", *_NAMES]) if name in _NAMES else "",
            needed=tuple(self._name() for _ in range(count)),
            paths={
                kind: ":".join(self._directory() for _ in range(choose.randint(1, 3)))
                for kind in ("rpath", "runpath")
                if choose.random() < (0.8 if is_main else 0.3)
            },
            filters=tuple(
                (_FILTER if choose.random() < 0.2 else _OPTIONAL, self._filter())
                for _ in range(choose.choice([0, 0, 0, 1, 2]) if len(self._filters) < 20 else 0)
            ),
            exports=("x",),
            undefined=(),
            weak=(),
            hash_style="both",
            flags=6,
            tags={0x6FFFFFFB: 0x800 if choose.random() < 0.1 else None},
        )
        path.write_bytes(made.build())

    def _name(self):
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

    def _filter(self):
        """Make a library that filters one other: the linker itself fails where it filters more."""
        name = f"libfilter{len(self._filters)}.so"
        self._filters.append(name)
        for place in _PLACES:
            folder = self.root / place / self.random.choice(("", *self._words))
            folder.mkdir(parents=True, exist_ok=True)
            self._write(folder / name, name)
        return name

    def _directory(self):
        place = self.random.choice(_PLACES)
        absolute = f"{self.root}/{place}"
        below = [f"{absolute}/$LIB", f"{absolute}/${{PLATFORM}}", f"{self.root}/absent"]
        near = [f"$ORIGIN/{place}", "${ORIGIN}", "", place, f"./{place}", f"{place}/../{place}"]
        # What begins like a token is the name of a directory.
        odd = ["$ORIGINAL", "${ORIGINAL}", f"$ORIGIN_/{place}", f"$NOTHING/{place}"]
        return self.random.choice([absolute, absolute, *below, *near, self.random.choice(odd)])


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


def run_linker(library, library_path):
    """Have the linker list what it would map."""
    return subprocess.run(
        [_LINKER, "--list", str(library)],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": library_path} if library_path else {},
    )


def by_linker(library, library_path):
    """Return what the linker would map."""
    done = run_linker(library, library_path)
    fatal = _FATAL.search(done.stderr)
    assert done.returncode == 0 or fatal, done
    files = _MAPPED.findall(done.stdout)
    return Listed(list(map(_of_tree, files)), _MISSING.findall(done.stdout), fatal and fatal[1])


def _of_tree(path):
    """Return a path as both write it, who know the system's linker by different links."""
    return os.path.realpath(path) if path.startswith("/lib") else str(Path.cwd() / path)


def by_us(tree, library_path):
    """Return what we find."""
    library_path = re.sub(r"\$ORIGIN(?!\w)|\$\{ORIGIN\}", str(tree.root), library_path)
    with (
        closing(ProcessScope(library_path=library_path)) as process,
        ElfFile(str(tree.main)) as elf,
    ):
        root = LinkedLibrary("", elf, is_companion=True)
        with closing(LinkScope(root, process)) as scope:
            missing = [one.name for one in scope.missing]
            return Listed([_of_tree(one.elf.path) for one in scope.others], missing)


@pytest.mark.parametrize("seed", sampled(range(120), range(25)))
def test_we_find_what_the_linker_finds(seed, tmp_path, monkeypatch):
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
def _of_program():
    """Return what the program itself is linked with, which is mapped already."""
    with closing(ProcessScope()) as process:
        return frozenset(map(_of_tree, process.paths))


def _builder(needed):
    return ElfBuilder(
        machine=_MACHINE,
        needed=(needed,),
        exports=("x",),
        undefined=(),
        weak=(),
        hash_style="both",
        flags=6,
        soname="",
    )


def _made(needed):
    return bytearray(_builder(needed).build())


def _on_one_page(needed, *, n_bytes, page):
    shown = _builder("libshown.so" if page else needed)
    return on_one_page(shown, _builder(needed), n_bytes=n_bytes, page=page)


def _short_dynamic_segment(needed):
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
def test_the_linker_maps_no_name_that_we_do_not_read(make, tmp_path):
    path, needed = tmp_path / "libmade.so", tmp_path / "libfound.so"
    path.write_bytes(make(needed.name))
    needed.write_bytes(_made("libc.so.6"))
    assert str(needed) in by_linker(path, str(tmp_path)).files

    refusal = "two segments have different bytes of the file on one page of memory"
    assert _needed_or_refusal(path) in {needed.name, refusal}


def _needed_or_refusal(path):
    try:
        with ElfFile(str(path)) as elf:
            return " ".join(elf.dynamic.needed)
    except ElfError as error:
        return error.message.removeprefix("libmade.so is cut off or damaged: ").partition(", at")[0]


@pytest.mark.parametrize("n_bytes", [8, 0])
@pytest.mark.parametrize("shift", [0, 8, PAGESIZE // 2])
def test_the_linker_maps_no_segment_between_pages(shift, n_bytes, tmp_path):
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


# -- what stands in the way of a library ----------------------------------------------------------


@pytest.fixture
def needing(tmp_path, monkeypatch):
    """Return a library that needs what the second of two folders has, and the search path."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "libfound.so").write_bytes(_made("libc.so.6"))
    made = tmp_path / "libmade.so"
    made.write_bytes(_made("libfound.so"))
    monkeypatch.chdir(tmp_path / "one")  # the name of a socket is short
    return made, f"{tmp_path}/one:{tmp_path}/two"


def _check(library, library_path):
    with (
        ElfFile(str(library)) as elf,
        closing(ProcessScope(library_path=library_path)) as process,
    ):
        return check_link(elf, HostExports(), process)


def _link(target):
    return lambda path: path.symlink_to(target)


def _bind(path):
    with socket(AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("place", "is_opened"),
    [
        pytest.param(Path.mkdir, False, id="directory"),
        pytest.param(_link("."), False, id="link to a directory"),
        pytest.param(_link("/dev/null"), False, id="device"),
        pytest.param(_link("/dev/null/x"), False, id="link below a file"),
        pytest.param(_link("libfound.so"), False, id="link to itself"),
        pytest.param(_bind, False, id="socket"),
        pytest.param(lambda path: path.write_bytes(b"no library"), True, id="text"),
        pytest.param(lambda path: path.write_bytes(b""), True, id="empty"),
        # The linker maps it.
        pytest.param(lambda path: path.write_bytes(_made("libc.so.6")[:-40]), True, id="cut off"),
    ],
)
def test_what_is_no_library_is_passed_over_by_neither(place, is_opened, needing, tmp_path):
    path = tmp_path / "one/libfound.so"
    place(Path("libfound.so"))
    linker = run_linker(*needing)
    if is_opened:
        assert str(path) in linker.stdout + linker.stderr
    else:
        assert linker.returncode == _NOT_LOADABLE

    found = _check(*needing)

    assert not found.libraries
    (problem,) = found.problems
    assert problem.rule_id in ({"LD-004", "LD-005"} if is_opened else {"LD-002", "LD-003"})
    assert problem.path == str(path)


def _replace_folder(path):
    path.parent.rmdir()
    path.parent.write_bytes(b"")


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(_link("nowhere"), id="link to nothing"),
        pytest.param(_replace_folder, id="file"),
    ],
)
def test_what_is_absent_is_passed_over_by_both(place, needing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place(tmp_path / "one/libfound.so")
    assert f"{tmp_path}/two/libfound.so" in by_linker(*needing).files

    found = _check(*needing)

    assert f"{tmp_path}/two/libfound.so" in [library.path for library in found.libraries]
    assert not found.problems
