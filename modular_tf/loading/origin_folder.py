"""Mirrors of folders, in which a library that is mapped by descriptor finds its neighbours.

To the dynamic linker a library's folder (`$ORIGIN`) is the one of the path that it was given, and
`dladdr` answers with that path. Of an open file that would be `/proc/self/fd`. So a library that
asks for its folder is given another path to the same open file: a link in a folder of this process
whose other entries are links to what lies beside the library's file.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.owned_file import open_owned
from modular_tf.discovery.privileges import is_privileged
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO

    from modular_tf.discovery.elf import ElfFile
    from modular_tf.loading.private_copy import OpenDescriptor

_PREFIX = "modular_tf-origin-"
_LOCK_NAME = "lock"
_UNLOCKED_LIFE_S = 60.0  # a process that has just made its folder has not locked it yet
_MOST_LEVELS = 8

_numbers = itertools.count(1)


def origin_levels(elf: ElfFile, file: str) -> int | None:
    """Return how many parent folders a library searches; None if it does not use its folder.

    Folders that do not exist do not count: build systems leave many such in search paths.
    """
    levels: list[int] = []
    for template in elf.dynamic.search_path:
        _, asked, way = template.replace("${ORIGIN}", "$ORIGIN").partition("$ORIGIN")
        if asked and os.path.isdir(os.path.dirname(file) + way):
            depth = 0
            levels.append(0)
            for part in way.split("/"):
                depth += {"..": 1, "": 0, ".": 0}.get(part, -1)
                levels.append(depth)
    if not levels:
        return 0 if elf.dynamic.strings.mentions(b"dladdr") else None
    return min(max(levels), _MOST_LEVELS)


class ShownLibrary(NamedTuple):
    """What is mapped when somebody opens a file by name in a mirror."""

    file: str
    source: OpenDescriptor


class Mirrors:
    """The mirrors of this process. A forked child makes its own, and leaves those of its parent."""

    def __init__(self) -> None:
        self._mirrors: dict[tuple[int, str, int, str], _Mirror] = {}
        self._shown_files: dict[str, str] = {}  # by their places in mirrors
        self._root: tuple[int, str, FileIO] | None = None  # process, path, lock

    def path_in(
        self,
        file: str,
        source: OpenDescriptor,
        levels: int,
        shown: Sequence[ShownLibrary] = (),
        *,
        shown_for: str = "",
    ) -> str | None:
        """Return a path to an open file in a mirror of the folder of `file`, None if none is made.

        `source` is the open file that is mapped for `file`; it stays open from now on. `levels`
        parent folders are mirrored as well. The mirror shows the libraries `shown` instead of their
        files, to the plugin `shown_for`, which has mirrors of its own.
        """
        folder, name = os.path.split(file)
        if is_privileged():  # the user controls where temporary files go
            return None
        key = (os.getpid(), os.path.realpath(folder), levels, shown_for if shown else "")
        try:
            mirror = self._mirrors.get(key)
            if mirror is None or not mirror.is_free_for(name, source):
                mirror = self._mirrors[key] = _Mirror(self.own_root(), key[1], levels)
                for library in shown:
                    if (link := mirror.show(library)) is not None:
                        self._shown_files[link] = library.file
            placed = mirror.place(name, source)
        except OSError as error:
            raise_shortage(error)
            return None
        # The dynamic linker replaces a dollar and what follows it.
        return None if "$" in placed else placed

    def unmirrored_path(self, path: str) -> str:
        """Return the file that a path in a mirror leads to; any other path unchanged."""
        if self._root is None or not path.startswith(f"{self._root[1]}/"):
            return path
        return self.shown_file(path) or os.path.realpath(path)

    def shown_file(self, path: str) -> str | None:
        """Return the file instead of which a mirror shows another; None for any other path."""
        return self._shown_files.get(os.path.normpath(path)) if self._shown_files else None

    def show_no_longer(self, library: ShownLibrary) -> bool:
        """Show the file itself again, and return whether that was possible.

        It is done before what was shown for it is closed: mirrors would show whatever file has the
        number of the descriptor next.
        """
        links = []
        for link, file in list(self._shown_files.items()):
            with suppress(OSError):
                if file == library.file and os.readlink(link) == _link_to(library.source):
                    links.append(link)
        if links and (self._root is None or self._root[0] != os.getpid()):
            return False
        for link in links:
            os.unlink(link)
            del self._shown_files[link]
            with suppress(OSError):  # then it is not found
                os.symlink(library.file, link)
        return True

    def remove(self) -> None:
        """Remove the mirrors of this process; its libraries find no neighbours from then on."""
        root, self._root = self._root, None
        if root is not None:
            with root[2]:
                if root[0] == os.getpid():
                    self._mirrors.clear()
                    self._shown_files.clear()
                    _remove(root[1])

    def own_root(self) -> str:
        """Return the directory of this process, and remove those of processes that ended."""
        if self._root is None or self._root[0] != os.getpid():
            self.remove()  # in a fork it only forgets those of the parent
            import tempfile  # noqa: PLC0415  (few libraries ask for their folder)

            runtime = os.environ.get("XDG_RUNTIME_DIR", "")
            base = runtime if os.path.isabs(runtime) and os.access(runtime, os.W_OK) else None
            path = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            lock = open_owned(os.path.join(path, _LOCK_NAME), flags, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._root = (os.getpid(), path, lock)
            others = os.path.dirname(path)
            for name in os.listdir(others):
                if name.startswith(_PREFIX) and _is_orphan(os.path.join(others, name)):
                    _remove(os.path.join(others, name))
        return self._root[1]


class _Mirror:
    """The mirror of one folder."""

    def __init__(self, root: str, folder: str, levels: int) -> None:
        self._folder = folder
        self._levels = levels
        self._shown: set[str] = set()
        self._mapped: dict[str, tuple[int, int]] = {}
        at = os.path.join(root, str(next(_numbers)))
        os.mkdir(at, 0o700)
        for above, below in _chain(folder, levels):
            for name in os.listdir(above):
                if name != below:
                    os.symlink(os.path.join(above, name), os.path.join(at, name))
            at = os.path.join(at, below)
            os.mkdir(at, 0o700)
        self._path = at

    def is_free_for(self, name: str, source: OpenDescriptor) -> bool:
        """Return whether a name is unused, or leads to the same file already.

        glibc knows a library by its path: a second one under it would silently be the first.
        """
        return self._mapped.get(name) in (None, _inode(source))

    def place(self, name: str, source: OpenDescriptor) -> str:
        """Return the link to an open file; links to new neighbours are added."""
        for other in os.listdir(self._folder):
            if other not in self._shown and other != name:
                os.symlink(os.path.join(self._folder, other), os.path.join(self._path, other))
                self._shown.add(other)
        link = os.path.join(self._path, name)
        if name not in self._mapped:
            if name in self._shown:
                os.unlink(link)
            source.keep()
            os.symlink(_link_to(source), link)
            self._shown.add(name)
            self._mapped[name] = _inode(source)
        return link

    def show(self, library: ShownLibrary) -> str | None:
        """Show a library instead of a file and return where; None if no mirrored folder has it."""
        folder, name = os.path.split(library.file)
        way = os.path.relpath(os.path.realpath(folder), self._folder)
        steps = [step for step in way.split("/") if step != "."]
        if steps.count("..") > self._levels:
            return None
        at = self._path
        for step in steps:
            at = os.path.normpath(os.path.join(at, step))
            if os.path.islink(at):  # becomes a folder of links to what is in it
                linked = os.readlink(at)
                names = os.listdir(linked)
                os.unlink(at)
                os.mkdir(at, 0o700)
                for entry in names:
                    os.symlink(os.path.join(linked, entry), os.path.join(at, entry))
        link = os.path.join(at, name)
        with suppress(FileNotFoundError):
            os.unlink(link)
        os.symlink(_link_to(library.source), link)
        if not steps:
            self._shown.add(name)
        return link


def _link_to(source: OpenDescriptor) -> str:
    return f"/proc/self/fd/{source.fd}"


def _inode(source: OpenDescriptor) -> tuple[int, int]:
    status = os.fstat(source.fd)
    return status.st_dev, status.st_ino


def _chain(folder: str, levels: int) -> Iterator[tuple[str, str]]:
    """Yield the parent folders, the highest first, each with the name of the next one."""
    if levels and os.path.dirname(folder) != folder:
        above, below = os.path.split(folder)
        yield from _chain(above, levels - 1)
        yield above, below


def _is_orphan(path: str) -> bool:
    """Return whether a directory is this user's, and no living process has locked it."""
    with suppress(OSError):
        status = os.lstat(path)
        age = abs(time.time() - status.st_mtime)  # the clock may have been set back since
        if status.st_uid != os.geteuid() or age < _UNLOCKED_LIFE_S:
            return False
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open_owned(os.path.join(path, _LOCK_NAME), flags) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _remove(path: str) -> None:
    import shutil  # noqa: PLC0415  (nothing was made in most processes)

    shutil.rmtree(path, ignore_errors=True)
