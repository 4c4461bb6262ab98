"""Over generated trees of libraries, we find what the dynamic linker finds, and in its order.

The linker lists what it would map (`ld.so --list`) and runs nothing. Each tree has a few names, in
many directories, needed and filtered by each other in random ways; a file may have the name, the
SONAME or neither of what it stands for.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.library_search import LibrarySearch, LinkedLibrary
from modular_tf.discovery.linking.link_scope import LinkScope
from modular_tf.discovery.linking.linker_properties import running_linker
from tests.discovery.elf_builder import ElfBuilder

if TYPE_CHECKING:
    from random import Random

with ElfFile(str(Path(sys.executable).resolve())) as _program:
    _LINKER, _TARGET = str(_program.image.interpreter()), _program.target
_MACHINE = _TARGET[2]
_OTHER_MACHINE = next(number for number in (62, 183) if number != _MACHINE)
_NAMES = ("liba.so", "libb.so", "libc++.so", "libd.so")
_PLACES = ("one", "one/sub", "two", "three")
_MAPPED = re.compile(r"^\t(?!linux-vdso)(?:\S+ => )?(\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\t(\S+) => not found$", re.MULTILINE)
_FATAL = re.compile(r"error while loading shared libraries: (\S+): cannot open shared object")
_OPTIONAL, _FILTER = 0x7FFFFFFD, 0x7FFFFFFF


class Tree:
    """Libraries below a directory, made of one seed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random: Random = random.Random(seed)
        self.often = self.random.choice([0.4, 0.7, 0.95])  # how often a library is there
        self._filters: list[str] = []
        linker = running_linker()
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


def by_linker(tree: Tree, library_path: str) -> Listed:
    """Return what the linker would map."""
    done = subprocess.run(
        [_LINKER, "--list", str(tree.main)],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": library_path} if library_path else {},
    )
    fatal = _FATAL.search(done.stderr)
    assert done.returncode == 0 or fatal, done
    files = _MAPPED.findall(done.stdout)
    return Listed(list(map(_of_tree, files)), _MISSING.findall(done.stdout), fatal and fatal[1])


def _of_tree(path: str) -> str:
    """Return a path as both tell it, who know the system's linker by different links."""
    return os.path.realpath(path) if path.startswith("/lib") else str(Path.cwd() / path)


def by_us(tree: Tree, library_path: str) -> Listed:
    """Return what we find."""
    search = LibrarySearch(_TARGET, library_path=library_path, program_origin=str(tree.root))
    with ElfFile(str(tree.main)) as elf:
        root = LinkedLibrary("", elf, None, is_companion=True)
        scope = LinkScope(root, search)
        try:
            missing = [one.name for one in scope.missing]
            return Listed([_of_tree(one.elf.path) for one in scope.others], missing)
        finally:
            scope.close()
            search.close()


@pytest.mark.parametrize("seed", range(120))
def test_we_find_what_the_linker_finds(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path, seed)
    library_path = tree.library_path()
    monkeypatch.chdir(tmp_path)

    listed, found = by_linker(tree, library_path), by_us(tree, library_path)

    if listed.fatal is None:
        assert found == listed
    else:
        assert Path(listed.fatal).name in [Path(name).name for name in found.missing]
