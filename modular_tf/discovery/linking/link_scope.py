"""The scope of a plugin: the libraries in which its symbols are looked up."""

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
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
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from modular_tf.discovery.linking.host_exports import HostExports

_AT_ONCE = 1 << 20
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
        return any(library.elf.find(name) for library in self.libraries)

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
        """Ask what this program was linked with."""
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
        are mapped: a companion may need the library that was asked for, which its own answer lacks.

        `offered` are names that the host replaces; the scope `before` is loaded already. Raises
        `ElfError` if the linker refuses a file (LD-002 to LD-005) or takes too long (LD-096), and
        `ShortageError` if it cannot be asked now.
        """
        found, path, mapped = elf.dynamic, absolute(elf.path), self._mapped
        if before is not None:
            mapped = (*mapped, absolute(before.root.elf.path), *before.paths)
        elif all(
            not it.is_filter and (it.name in offered or it.name in self._by_name)
            for it in found.linked
        ):
            return Trace((), ())
        key = mapped, frozenset(offered), found.link_settings, os.path.dirname(path), absolute("")
        if key in self._traces:
            return self._traces[key]
        _require_readable_names(elf)
        asked = self._ask([*mapped, path], offered)
        if (path, None) in asked.listed:
            raise ElfError(f"{path} cannot be read", path=path, rule=rules.READABLE)
        old, taken = {path, *self.paths, *mapped}, {at for _, at in asked.listed}
        trace = Trace(
            tuple((name, at) for name, at in asked.listed if at not in old),
            tuple(at for at in asked.tried if at not in taken),
        )
        if all(at is None or is_of_system(at) for _, at in trace.listed):
            self._traces[key] = trace
        return trace

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        for elf in self._opened.values():
            elf.close()

    def _ask(self, needed: Iterable[str], offered: Collection[str]) -> Trace:
        library_path, preload = self._variables
        return ask_linker(
            [*needed], library_path=library_path, preload=preload, already_provided=sorted(offered)
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

        `offered` are names that the host replaces where they are needed, but not where they are
        filters'. `before` is loaded already.
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
            self._collect(offered)
            # Which names are filters' is known once all is open: those are asked for again.
            while filters := self._filters().intersection(offered):
                offered = frozenset(offered) - filters
                self._collect(offered)
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

    def _filters(self) -> set[str]:
        linked = (linked for library in self.libraries for linked in library.elf.dynamic.linked)
        return {it.name for it in linked if it.is_filter}

    def _collect(self, offered: Collection[str]) -> None:
        """Ask the linker what is mapped, and open it."""
        self.close()
        self.libraries, self._by_name = [], {}
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
        needed_by: dict[
            str, str
        ] = {}  # by names as the linker reports them, with `$ORIGIN` filled in
        for library in self.libraries if failures else ():
            origin = os.path.dirname(library.elf.path)
            for it in library.elf.dynamic.linked:
                for name in () if it.is_optional else expand(it.name, origin):
                    needed_by.setdefault(name, library.name)
        self.missing = [
            MissingLibrary(name, needed_by.get(name, self.root.name), failure)
            for name, failure in failures.items()
            if name in needed_by or failure is not None
        ]
        self.passed_over = tuple(dict.fromkeys(map(_highest_absent, trace.tried)))

    def _require_few(self, libraries: int) -> None:
        if libraries > MAX_LIBRARIES:
            message = f"linking {self.root.name} takes more than {MAX_LIBRARIES} libraries"
            raise ElfError(message, path=self.root.elf.path, rule=rules.LINKING_BOUNDED)


def _why_no_file(name: str, tried: Sequence[str]) -> ElfError | None:
    """Return why a path that was tried for a name is no readable file; None if nothing is there.

    The linker skips the rest of a search path there, and reports only that it found nothing.
    """
    for path in tried:
        if os.path.basename(path) == name:
            try:
                ElfFile(path).close()
            except ElfError as error:
                is_absent = getattr(error.__cause__, "errno", None) in _ABSENT
                if error.rule in (rules.REGULAR_FILE, rules.READABLE) and not is_absent:
                    return error
    return None


def _require_readable_names(elf: ElfFile) -> None:
    for text in (*(linked.name for linked in elf.dynamic.linked), *elf.dynamic.search_path):
        require_readable(text, elf.path)


def _highest_absent(path: str) -> str:
    """Return the highest folder on the way to a path that does not exist, else the path."""
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        path, folder = folder, os.path.dirname(folder)
    return path


# -- libraries that code opens by name -------------------------------------------------------------


def libraries_opened_by_name(
    own: Sequence[LinkedLibrary], scope: LinkScope, process: ProcessScope, host: HostExports
) -> Iterator[LinkScope]:
    """Yield a scope for each library that code may open by name and that needs TensorFlow.

    A plugin may choose a library for this processor in a constructor and open it with dlopen. Where
    that library needs one of TensorFlow's, only a copy of it can be led to the host. It is looked
    for in the folders where the linker, or the plugin's code, looks from the plugin's own folder.

    Each scope begins with that library, and has what comes with it beside what is mapped before. It
    is closed when the next one is asked for.
    """
    folders: dict[str, str] = {}
    for library in own:
        dynamic, origin = library.elf.dynamic, os.path.dirname(library.elf.path)
        searched = [it for it in dynamic.search_path if "$ORIGIN" in it or "${ORIGIN}" in it]
        found = [folder for template in searched for folder in expand(template, origin)]
        for folder in (*found, *([origin] if dynamic.strings.mentions(b"dladdr") else ())):
            folders.setdefault(os.path.realpath(folder), folder)
    needed = {library.elf.identity for library in scope.libraries}
    for elf in neighbours_that_need(host.sonames - {HOST_RUNTIME}, folders.values()):
        name = os.path.basename(elf.path)
        if elf.identity not in needed and any(file_mentions(it.elf.path, name) for it in own):
            root = LinkedLibrary(name, elf, is_companion=True)
            with (
                suppress(ElfError),
                closing(LinkScope(root, process, offered=host.sonames, before=scope)) as opened,
            ):
                yield opened


def neighbours_that_need(sonames: frozenset[str], folders: Iterable[str]) -> Iterator[ElfFile]:
    """Yield the libraries in some folders that need one of these, open until the next is asked."""
    for folder in folders:
        try:
            names = sorted(filter(is_plugin_file_name, os.listdir(folder)))
        except OSError:
            continue
        paths = (os.path.join(folder, name) for name in names)
        for path in islice((path for path in paths if not is_of_system(path)), MAX_LIBRARIES):
            with suppress(ElfError), ElfFile(path) as elf:
                fits = elf.image.machine_number == running_program().machine
                if fits and elf.is_shared_object and not sonames.isdisjoint(elf.dynamic.needed):
                    yield elf


def file_mentions(path: str, name: str) -> bool:
    """Return whether the bytes of a file contain a name; False if it cannot be read."""
    wanted, end = os.fsencode(name), b""
    try:
        with open(path, "rb") as stream:
            while block := stream.read(_AT_ONCE):
                if wanted in end + block:
                    return True
                end = block[-len(wanted) :]
    except OSError:
        return False
    return False
