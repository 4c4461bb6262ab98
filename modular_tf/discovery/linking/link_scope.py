"""The scope of a plugin: the libraries in which its symbols are looked up."""

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile, SymbolName
from modular_tf.discovery.linking.dynamic_linker import (
    Trace,
    absolute,
    ask_linker,
    require_readable,
    running_program,
)
from modular_tf.discovery.linking.host_exports import HOST_RUNTIME
from modular_tf.discovery.linking.system_libraries import expand, is_of_system
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.errors import ElfError
from modular_tf.rules import loading as rules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from modular_tf.discovery.linking.host_exports import HostExports

_ABSENT = (errno.ENOENT, errno.EACCES, errno.ENAMETOOLONG)
MAX_LIBRARIES = 1024
"""How many libraries one may need, directly or not; TensorFlow needs about sixty."""


class LinkedLibrary(NamedTuple):
    """A library that will be loaded."""

    name: str  # by which it was needed
    elf: ElfFile  # the open file
    is_companion: bool  # not where the system has its libraries, so it may not fit this system


class MissingLibrary(NamedTuple):
    """A needed library that was not found."""

    name: str  # by which it is needed
    needed_by: str
    error: ElfError | None = None  # of the file that the linker takes; None if there is none


class _Scope:
    """Libraries in the linker's order, the one that they start from first."""

    def __init__(self, root: LinkedLibrary) -> None:
        self.libraries = [root]
        self._by_name: dict[str, LinkedLibrary] = {}

    @property
    def others(self) -> list[LinkedLibrary]:
        """All libraries but the one that it starts from."""
        return self.libraries[1:]

    @property
    def paths(self) -> list[str]:
        """The paths of all libraries but the one that it starts from."""
        return [library.elf.path for library in self.libraries[1:]]

    def library(self, name: str) -> LinkedLibrary | None:
        """Return the library of this name."""
        return self._by_name.get(name)

    def offers(self, name: str) -> bool:
        """Return whether any of the libraries defines a symbol."""
        wanted = SymbolName(name)
        return any(library.elf.find(wanted) for library in self.libraries)

    def _add(self, library: LinkedLibrary) -> None:
        self.libraries.append(library)
        for name in (library.name, library.elf.dynamic.soname):
            self._by_name.setdefault(name or "", library)


class ProcessScope(_Scope):
    """This program, the libraries that it was started with, and the answers of its linker.

    It owns open files: libraries of the system are opened once, since most plugins need the same.
    [any thread, one at a time]
    """

    def __init__(self, *, library_path: str = "", preload: str = "") -> None:
        """Ask what this program was linked with.

        `library_path` and `preload` are the values of LD_LIBRARY_PATH and LD_PRELOAD when the
        process started. Raises `ElfError` if the program cannot be read or its linker cannot be
        asked, and `ShortageError`.
        """
        self.libraries = []
        self._variables = library_path, preload
        self._opened: dict[str, ElfFile] = {}
        self._traces: dict[tuple[object, ...], Trace] = {}
        self._answers: dict[str, bool] = {}
        try:
            program = self.open(running_program().path, keep=True)
            super().__init__(LinkedLibrary("the program", program, is_companion=False))
            for name, path in self._ask((), ()).listed:
                if path is not None:
                    elf = self.open(path, keep=True)
                    self._add(LinkedLibrary(name, elf, is_companion=False))
            linker = os.path.realpath(running_program().linker)  # which is mapped in any case
            self._mapped = tuple(it for it in self.paths if os.path.realpath(it) != linker)
        except BaseException:
            self.close()
            raise

    def offers(self, name: str) -> bool:
        """Return whether a library of the process defines a symbol; results are cached."""
        if name not in self._answers:
            self._answers[name] = super().offers(name)
        return self._answers[name]

    def open(self, path: str, *, keep: bool) -> ElfFile:
        """Return an open library; `keep` it to return it again and close it with this object."""
        if path in self._opened:
            return self._opened[path]
        elf = ElfFile(path)
        try:
            _require_readable_names(elf)
            if self.libraries:
                elf.require_shared_object()
        except BaseException:
            elf.close()
            raise
        if keep:
            self._opened[path] = elf
        return elf

    def trace(self, elf: ElfFile, offered: Collection[str], before: LinkScope | None) -> Trace:
        """Return what would be mapped with a library, but for itself and what is mapped already.

        Libraries of one folder that need the same share one answer of the linker, unless companions
        are mapped: a companion may need the library that was asked for first, which is not in its
        own answer.

        `offered` are names that the host replaces; the scope `before` is loaded already. Raises
        `ElfError` if the linker refuses a file (LD-002 to LD-005) or takes too long (LD-096), and
        `ShortageError` if it cannot be asked now.
        """
        found, path = elf.dynamic, absolute(elf.path)
        if before is None and all(
            not it.is_filter and (it.name in offered or it.name in self._by_name)
            for it in found.linked
        ):
            return Trace((), ())
        known = self._mapped
        if before is not None:
            known = (*known, absolute(before.root.elf.path), *before.paths)
        key = (
            known, frozenset(offered), found.linked, found.soname, found.rpath, found.runpath,
            found.has_runpath, found.searches_system, os.path.dirname(path), absolute(""),
        )  # fmt: skip
        for known_by in (key, (*key, path)):
            if known_by in self._traces:
                return self._traces[known_by]
        _require_readable_names(elf)
        whole = self._ask([*known, path], offered)
        if (path, None) in whole.listed:
            raise ElfError(f"{path} cannot be read", path=path, rule=rules.READABLE)
        taken = {at for _, at in whole.listed}
        old = {path, *self.paths, *known}
        trace = Trace(
            tuple((name, at) for name, at in whole.listed if at not in old),
            tuple(at for at in whole.tried if at not in taken),
        )
        has_companions = not all(at is None or is_of_system(at) for _, at in trace.listed)
        self._traces[(*key, path) if has_companions else key] = trace
        return trace

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        for elf in self._opened.values():
            elf.close()

    def _ask(self, needed: Iterable[str], offered: Collection[str]) -> Trace:
        library_path, preload = self._variables
        return ask_linker(
            [*needed], library_path=library_path, preload=preload, stand_ins=sorted(offered)
        )


class LinkScope(_Scope):
    """A library with all that is mapped with it, directly or not, in the linker's order."""

    def __init__(
        self,
        root: LinkedLibrary,
        process: ProcessScope,
        *,
        offered: Collection[str] = (),
        before: LinkScope | None = None,
    ) -> None:
        """Find what `root` needs; the scope does not close `root`.

        `offered` are names that the host replaces where they are needed; one that turns out to be
        the name of a filter is searched for by asking the linker again. `before` is loaded already.
        """
        super().__init__(root)
        self.root = root
        # Not found or damaged; an auxiliary filter that is not found does not count.
        self.missing: list[MissingLibrary] = []
        # paths at which another library would have been found instead
        self.passed_over: tuple[str, ...] = ()
        self._process, self._before = process, before
        self._require_few(len(root.elf.dynamic.linked))
        try:
            while filtered := self._collect(offered):
                offered = frozenset(offered) - filtered
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the companions; a second call does nothing. Others belong to the process."""
        for library in self.others:
            if library.is_companion:
                library.elf.close()

    def library(self, name: str) -> LinkedLibrary | None:
        """Return the library of this name, from what is loaded before or from here."""
        outer = self._before or self._process
        return outer.library(name) or super().library(name)

    def offers(self, name: str) -> bool:
        """Return whether any library here or loaded before defines a symbol."""
        outer = self._before or self._process
        return outer.offers(name) or super().offers(name)

    def _collect(self, offered: Collection[str]) -> set[str]:
        """Open what is mapped; return the replaced names that turned out to be filters'."""
        self.close()
        self.libraries = []
        self._by_name = {}
        self._add(self.root)
        trace = self._process.trace(self.root.elf, offered, self._before)
        self._require_few(len({name for name, _ in trace.listed}))
        failures: dict[str, ElfError | None] = {}
        for name, path in trace.listed:
            if path is None:
                failures.setdefault(name, _why_no_file(name, trace.tried))
                continue
            is_companion = not is_of_system(path)
            try:
                elf = self._process.open(path, keep=not is_companion)
                self._add(LinkedLibrary(name, elf, is_companion))
            except ElfError as error:
                failures[name] = error
        self.missing = [*self._missing(failures)]
        self.passed_over = tuple(dict.fromkeys(map(_highest_absent, trace.tried)))
        linked = (linked for library in self.libraries for linked in library.elf.dynamic.linked)
        return {it.name for it in linked if it.is_filter}.intersection(offered)

    def _require_few(self, libraries: int) -> None:
        if libraries > MAX_LIBRARIES:
            message = f"linking {self.root.name} takes more than {MAX_LIBRARIES} libraries"
            raise ElfError(message, path=self.root.elf.path, rule=rules.LINKING_BOUNDED)

    def _missing(self, failures: Mapping[str, ElfError | None]) -> Iterator[MissingLibrary]:
        for name, error in failures.items():
            needed_by = next(
                (
                    library.name
                    for library in self.libraries
                    for linked in library.elf.dynamic.linked
                    if not linked.is_optional and _stands_for(linked.name, name, library.elf.path)
                ),
                None if error is None else self.root.name,
            )
            if needed_by is not None:
                yield MissingLibrary(name, needed_by, error)


def _why_no_file(name: str, tried: Sequence[str]) -> ElfError | None:
    """Return why a path that was tried for a name is no readable file; None if nothing is there.

    The linker skips the rest of a search path there, and reports only that it found nothing.
    """
    for path in tried:
        if os.path.basename(path) == name:
            try:
                ElfFile(path).close()
            except ElfError as error:
                cause = error.__cause__
                is_absent = isinstance(cause, OSError) and cause.errno in _ABSENT
                if error.rule in (rules.REGULAR_FILE, rules.READABLE) and not is_absent:
                    return error
    return None


def _require_readable_names(elf: ElfFile) -> None:
    for text in (*(linked.name for linked in elf.dynamic.linked), *elf.dynamic.search_path):
        require_readable(text, elf.path)


def _stands_for(template: str, name: str, path: str) -> bool:
    """Return whether a name in a library is the one that the linker looked for."""
    return template == name or ("$" in template and name in expand(template, os.path.dirname(path)))


def _highest_absent(path: str) -> str:
    """Return the highest folder on the way to a path that does not exist, else the path."""
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        path, folder = folder, os.path.dirname(folder)
    return path


_BLOCK_BYTES = 1 << 20


def libraries_opened_by_name(
    own: Sequence[LinkedLibrary], scope: LinkScope, process: ProcessScope, host: HostExports
) -> Iterator[LinkScope]:
    """Yield a scope for each library that code may open by name and that needs TensorFlow.

    Each scope begins with that library, and has what comes with it beside what is mapped before. It
    is closed when the next one is asked for.

    `own` are the plugin and the libraries that it brings along; `scope` is the plugin's.
    """
    needed = {library.elf.identity for library in scope.libraries}
    replaced = host.sonames - {HOST_RUNTIME}
    for path in _neighbours(own):
        elf = _open(path)
        if elf is None:
            continue
        with elf:
            if elf.identity in needed or replaced.isdisjoint(elf.dynamic.needed):
                continue
            name = os.path.basename(path)
            if any(file_mentions(library.elf.path, name) for library in own):
                root = LinkedLibrary(name, elf, is_companion=True)
                with (
                    suppress(ElfError),
                    closing(LinkScope(root, process, offered=host.sonames, before=scope)) as found,
                ):
                    yield found


def _neighbours(own: Sequence[LinkedLibrary]) -> Iterator[str]:
    """Yield libraries in the folders that are searched from the folders of these libraries."""
    folders: dict[str, str] = {}
    for library in own:
        for folder in _folders(library):
            folders.setdefault(os.path.realpath(folder), folder)
    for folder in folders.values():
        yield from islice(_libraries_in(folder), MAX_LIBRARIES)


def _folders(library: LinkedLibrary) -> Iterator[str]:
    dynamic, origin = library.elf.dynamic, os.path.dirname(library.elf.path)
    for template in dynamic.search_path:
        if "$ORIGIN" in template or "${ORIGIN}" in template:
            yield from expand(template, origin)
    if dynamic.strings.mentions(b"dladdr"):
        yield origin


def _libraries_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = (os.path.join(folder, name) for name in sorted(names) if is_plugin_file_name(name))
    return [path for path in found if not is_of_system(path)]


def _open(path: str) -> ElfFile | None:
    try:
        elf = ElfFile(path)
    except ElfError:
        return None
    if elf.image.machine_number == running_program().machine and elf.is_shared_object:
        return elf
    elf.close()
    return None


def file_mentions(path: str, name: str) -> bool:
    """Return whether the bytes of a file contain a name; False if it cannot be read."""
    wanted, end = os.fsencode(name), b""
    try:
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                if wanted in end + block:
                    return True
                end = block[-len(wanted) :]
    except OSError:
        return False
    return False
