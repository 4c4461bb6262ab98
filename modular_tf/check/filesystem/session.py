"""A filesystem that is loaded and ready for checks, by its slots or through this package."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.filesystem.by_slots import SlotFilesystem, open_raw
from modular_tf.check.filesystem.through_host import HostFilesystem
from modular_tf.check.filesystem.workspace import (
    FilesystemWorkspace,
    PreparedWorkspace,
)
from modular_tf.check.memory_watch import Breach, note_damage
from modular_tf.check.outcome import Pass
from modular_tf.check.session import Session, mapped_library, opened_service, random_for
from modular_tf.check.target import LOCAL_SCHEMES
from modular_tf.errors import ConfigError
from modular_tf.filesystem.uri import dirname, join_path
from modular_tf.loading.filesystem_tables import (
    FILESYSTEM_INIT,
    FilesystemTables,
    init_filesystems,
)
from modular_tf.rules.keys import values_of
from modular_tf.service.configuration import ISOLATION_VARIABLE, Config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

    from modular_tf.check.answers import Answer
    from modular_tf.check.calls import CallJournal
    from modular_tf.check.check import Check
    from modular_tf.check.filesystem.operations import Operations
    from modular_tf.check.target import Target

_FINE = frozenset({Code.OK, Code.ALREADY_EXISTS})
_NO_PLACE = frozenset(
    {Code.NOT_FOUND, Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.UNAVAILABLE}
)
_HOST = "modular-tf-check"
_DEEPEST = 64
_STRANGE = frozenset({"", ".", ".."})


class FilesystemSession(Session):
    """One filesystem of one plugin.

    Attributes:
        access: The filesystem, initialised.

    Args:
        target: What to load and how to reach it.

    Raises:
        Blocked: It offers no such scheme, its tables were refused, or its `init` failed.
        ModularTFError: It cannot be loaded.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.access: SlotFilesystem | HostFilesystem
        self._close: Callable[[], object]
        open_access = _by_slots if target.reached is Pass.RAW else _through_host
        self.access, self._close = open_access(target, self.journal)
        self._roots = Roots(target)

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that cannot be called, None where all can."""
        return next((slot for slot in needs if not self.access.offers(slot)), None)

    def new_workspace(self, check_id: str) -> FilesystemWorkspace:
        """Make an empty directory for a check, which stays; see `Roots.make`."""
        chance = random_for(self.target, check_id)
        if self.target.options.prepared:
            root = (self.target.root or "").rstrip("/")
            return PreparedWorkspace(self.access, root, self.target, chance)
        root = self._roots.make(self.access, check_id)
        self.calls.clear()
        return FilesystemWorkspace(self.access, root, self.target, chance)

    @contextmanager
    def workspace(self, check: Check) -> Iterator[FilesystemWorkspace]:
        """Make an empty directory for a check, and remove it afterwards.

        Raises `Breach` where the plugin did harm meanwhile.
        """
        made = self.new_workspace(check.id)
        try:
            yield made
        except BaseException:
            try:
                self._tidy(made)
            except Breach:  # the check has failed already
                note_damage()
            raise
        self._tidy(made)

    def _tidy(self, made: FilesystemWorkspace) -> None:
        """Clean up what the check has left open, then remove what it made.

        The calls that remove it are not the check's.
        """
        if isinstance(self.access, SlotFilesystem):
            self.access.close_left_open()
        if isinstance(made, PreparedWorkspace):
            return
        stored = list(self.calls)
        try:
            self._roots.remove(self.access, made.root)
        finally:
            self.calls[:] = stored

    def close(self) -> None:
        """Remove the directory of all roots, and take the filesystem down.

        Raises `Breach` where the plugin did harm meanwhile.
        """
        self._roots.close(self.access)
        self._close()


def _by_slots(target: Target, journal: CallJournal) -> tuple[SlotFilesystem, Callable[[], object]]:
    """Map a library and initialise one of its filesystems."""
    journal.enter("a constructor of the library")
    library = mapped_library(target)
    journal.enter(FILESYSTEM_INIT)
    offer = init_filesystems(library, plugin=target.path)
    entry = next((one for one in offer.entries if one.scheme == target.scheme), None)
    if not isinstance(entry, FilesystemTables):
        found = [*offer.violations, *(entry.violations if entry is not None else ())]
        reasons = "; ".join(str(one.message) for one in found if one.is_error)
        why = reasons or "the plugin does not name it"
        raise Blocked(f"scheme {target.scheme!r} is not usable: {why}")
    access = open_raw(entry, journal)
    return access, access.cleanup


def _through_host(
    target: Target, journal: CallJournal
) -> tuple[HostFilesystem, Callable[[], object]]:
    """Open a service that serves one plugin."""
    journal.enter("PluginService.load")
    isolation = {ISOLATION_VARIABLE: os.environ.get(ISOLATION_VARIABLE, "")}
    try:
        settings = values_of(Config, isolation)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    service = opened_service(target, **settings)
    entry = service.entry(target.path)
    tables = entry.tables.get(target.scheme or "")
    if tables is None:
        reasons = "; ".join(reason.message for reason in entry.plugin.record().reasons)
        service.close()
        why = reasons or "the plugin does not name it"
        raise Blocked(f"scheme {target.scheme!r} is not served: {why}")
    filesystem = service.filesystem(target.scheme or "")
    return HostFilesystem(filesystem, tables, journal), service.close


@contextmanager
def further_filesystem(fs: FilesystemWorkspace) -> Iterator[SlotFilesystem]:
    """Initialise a further filesystem of the plugin, and clean it up in the end."""
    other = initialised(fs)
    try:
        yield other
    finally:
        other.cleanup()


def initialised(fs: FilesystemWorkspace) -> SlotFilesystem:
    """Return a further filesystem of the plugin, initialised."""
    other = fs.by_slots.another()
    answer = other.init()
    if not answer.ok:
        raise Blocked(f"init failed with {answer.code}: {answer.message}", "FS-019")
    return other


@contextmanager
def workspace_on(
    other: SlotFilesystem, fs: FilesystemWorkspace, check_id: str
) -> Iterator[FilesystemWorkspace]:
    """Make an empty directory on another filesystem, below the check's own, and remove it."""
    if isinstance(fs, PreparedWorkspace):
        yield fs.on(other, fs.root)
        return
    roots = Roots(fs.target, fs.root)
    root = roots.make(other, check_id)
    try:
        yield fs.on(other, root)
    finally:
        roots.remove(other, root)


class Roots:
    """Makes and removes the directories of the checks of one process. [one thread]

    Args:
        target: What is checked: its root is where they are made, or else its scratch directory
            for plain paths, or else a host of its own.
        place: Where they are made instead.
    """

    def __init__(self, target: Target, place: str | None = None) -> None:
        scheme = target.scheme or ""
        place = target.root if place is None else place
        self._run = f"{time.time_ns():x}-{os.getpid()}"
        self._made = 0
        self._creates = target.options.create_roots
        self._is_local = place is None and scheme in LOCAL_SCHEMES and bool(target.scratch)
        if self._is_local:
            # A check may have further processes make roots in the same directory.
            self._base = f"{LOCAL_SCHEMES[scheme]}{target.scratch}/{self._run}"
        else:
            self._place = (place or f"{scheme}://{_HOST}").rstrip("/")
            self._base = f"{self._place}/{self._run}"
        self._is_assumed = target.assumed_store is not None and place is None
        self._not_there: Blocked | None = None

    def make(self, fs: Operations, check_id: str) -> str:
        """Make an empty directory and return its URI; where the first one fails, all do."""
        if self._not_there is not None:
            raise self._not_there
        self._made += 1
        root = f"{self._base}/{check_id}-{self._made}"
        if not self._creates:
            return root
        if self._is_local:
            os.makedirs(_local(root))
            return root
        try:
            # Stores answer what is there already in seconds, where they answer at all.
            if self._made == 1 or not fs.create_dir(root).ok:
                answer = _make_with_parents(fs, root)
                if answer.code not in _FINE:
                    self._block(answer)
        except Unsupported:  # files need no directory, or the check fails at its first file
            if self._is_assumed and self._made == 1:
                self._try_to_write(fs, f"{root}-trial")
        return root

    def _try_to_write(self, fs: Operations, uri: str) -> None:
        """Write a file, since there is no directory by which a place can be known."""
        with suppress(Unsupported):
            answer = fs.new_writable_file(uri)
            if (writer := answer.value) is not None:
                try:
                    if (answer := writer.append(b"trial")).ok:
                        answer = writer.close()
                finally:
                    writer.cleanup()
                fs.delete_file(uri)
            if answer.code in _NO_PLACE:
                self._block(answer)

    def _block(self, answer: Answer) -> NoReturn:
        """Block the check, and where its root is the first one all that follow.

        A root is asked for only there: the place of one that worked is right.
        """
        is_first = self._made == 1
        blocked = Blocked(
            f"nothing can be made below {self._place}",
            found=code_found(answer),
            wants_root=is_first,
        )
        if is_first:
            self._not_there = blocked
        raise blocked

    def remove(self, fs: Operations, root: str) -> None:
        """Remove a root as far as that works; what goes wrong is no finding but for a breach."""
        if self._is_local:
            shutil.rmtree(_local(root), ignore_errors=True)
            return
        self._remove_tree(fs, root)

    def close(self, fs: Operations) -> None:
        """Remove the directory of all roots, with what is left in it; as `remove`."""
        if self._made and not self._is_local:
            self._remove_tree(fs, self._base)

    @staticmethod
    def _remove_tree(fs: Operations, uri: str) -> None:
        try:
            remove_tree(fs, uri)
        except Breach:
            raise
        except (Deviation, Unsupported, Blocked):
            pass


def _local(root: str) -> str:
    return root.removeprefix("file://")


def _make_with_parents(fs: Operations, root: str) -> Answer:
    if fs.offers("recursively_create_dir"):
        answer = fs.recursively_create_dir(root)
        if answer.code in _FINE:
            return answer
    for uri in reversed(_levels(root)):
        answer = fs.create_dir(uri)
        if answer.code == Code.UNIMPLEMENTED:
            raise Unsupported("create_dir is UNIMPLEMENTED")
    return answer


def _levels(root: str) -> list[str]:
    """Return a URI and its parents, innermost first, up to its host."""
    levels = [root]
    while parent := dirname(levels[-1]).rstrip("/"):
        if parent == levels[-1] or parent.endswith(":"):
            break
        levels.append(parent)
    return levels


def remove_tree(fs: Operations, uri: str, depth: int = 0) -> None:
    """Delete a directory with all that is in it, as far as that works."""
    if fs.has("delete_recursively") and fs.delete_recursively(uri).ok:
        return
    for name in _names(fs, uri) if depth < _DEEPEST else []:
        child = join_path(uri, name)
        if not fs.delete_file(child).ok:
            remove_tree(fs, child, depth + 1)
    fs.delete_dir(uri)


def _names(fs: Operations, uri: str) -> list[str]:
    """Return the children that cannot lead out of the directory, nor back to it."""
    try:
        listed = fs.get_children(uri).value or []
    except Unsupported:
        return []
    names = {name.rstrip("/") for name in listed if name}
    return sorted(name for name in names - _STRANGE if "/" not in name)
