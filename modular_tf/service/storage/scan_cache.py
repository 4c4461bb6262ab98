"""The scan cache: the results for a library, valid as long as its bytes are the same.

An entry is valid if the library and all files that its verdict depends on are unchanged. It belongs
to one state of the host. A result that can change at any time, such as a missing library, is not
stored.
"""

from __future__ import annotations

import os
from contextlib import suppress
from json import JSONDecoder, dumps
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.codec import decode, encode, row
from modular_tf.discovery.candidate import LoadFacts
from modular_tf.discovery.file_identity import FileIdentity, SeenFile, see, see_again
from modular_tf.discovery.host_fingerprint import host_fingerprint, linking_parts
from modular_tf.discovery.linking.system_libraries import LINKER_CACHE
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import cache_directory
from modular_tf.first_contact.finding import Finding  # noqa: TC001  (for the codec)
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage.database import Database, Table, oldest
from modular_tf.service.storage.private_directory import PrivateDirectory, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from modular_tf.discovery.host_fingerprint import HostFingerprint
    from modular_tf.discovery.probe import Probe

__all__ = ["CacheEntry", "ScanCache"]

_NAME = "scan-cache.sqlite"
_read_json = JSONDecoder().raw_decode  # what `loads` does, in half the time
_Row = tuple[str, str, str]
# Of the rules that refuse a library, those that nothing but its bytes can break.
_BY_BYTES = frozenset(
    rule.id
    for rule in (
        rules.IS_ELF,
        rules.WHOLE_ELF,
        rules.WORD_SIZE,
        rules.BYTE_ORDER,
        rules.MACHINE,
        rules.SHARED_OBJECT,
        rules.INIT_SYMBOL,
        rules.INIT_SYMBOL_IS_FUNCTION,
        rules.KIND_SERVED,
        rules.SIZE_BOUNDED,
    )
)


@row
class CacheEntry(NamedTuple):
    """The results for one library."""

    seen: SeenFile  # the library before it was probed
    facts: LoadFacts  # what loading needs of the probe
    # files that its code opened when it was tried before, by a finding that no longer holds: they
    # are judged before it is tried again
    opened_before: tuple[str, ...] = ()
    tried: bool = False  # it was tried and did no harm
    # of its trial or loading; None where it was neither tried nor loaded
    finding: Finding | None = None
    # it may be stored: not where a fault may be mended at any time, such as a missing library, nor
    # where a file changed while it was examined
    storable: bool = True
    # what the verdict depends on beside the library: each library that is loaded with it, the
    # linker's cache, and paths where there was no file and one would be taken
    dependencies: tuple[SeenFile, ...] = ()

    @property
    def sha256(self) -> str:
        """Of the library's bytes, in hexadecimal digits."""
        return self.seen.sha256 or ""


@row
class _Library(NamedTuple):
    """Whether a library is a plugin, and how it was seen where that lasts."""

    path: str
    is_plugin: bool | None = None
    seen: SeenFile | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it is as it was when it was read."""
        if self.is_plugin is None or self.seen is None or self.seen.path != self.path:
            return False
        return self.seen.identity is not None and see_again(self.seen) is self.seen

    def read(self, is_plugin: Callable[[str], bool | None]) -> _Library:
        seen = see(self.path, read=False)
        found = is_plugin(self.path)
        if found is None or seen is None or seen.identity is None or see_again(seen) is not seen:
            return _Library(self.path, found)
        return _Library(self.path, found, seen)


@row
class _Distribution(NamedTuple):
    seen: SeenFile | None  # its RECORD
    libraries: tuple[_Library, ...]


class ScanCache(Database):
    """The results of this user's processes on this host. [any thread]

    Where nothing can be read or written, results last as long as this process. Methods that read
    libraries may raise `ShortageError`: nothing is known of them now.
    """

    make_room = (
        oldest("library"),
        oldest("distribution"),
        (
            "DELETE FROM host WHERE id NOT IN"
            " (SELECT host FROM library UNION SELECT host FROM distribution)"
        ),
    )

    def __init__(self, directory: PrivateDirectory, host: HostFingerprint) -> None:
        """Read the cache, which `of_process` finds; its entries depend on `host` beside files."""
        self._libraries = Table("library", "path", "sha256", "dependencies", "entry")
        self._distributions = Table("distribution", "record", "libraries")
        self._dependencies = _Dependencies()
        self._by_sha256: tuple[dict[str, _Row], dict[str, list[str]]] = ({}, {})
        tables = (self._libraries, self._distributions)
        super().__init__(directory, _NAME, *tables, host=repr(dict(host.parts)))

    @classmethod
    def of_process(cls, settings: Mapping[str, str] | None = None) -> ScanCache:
        """Return the cache of the running process; an empty one where it has none.

        `settings` is what else decides about plugins, such as rules that the user has made
        warnings.
        """
        place = cache_directory(os.environ, privileged=is_privileged())
        parts = {**linking_parts(os.environ), **(settings or {})}
        return cls(PrivateDirectory(place), host_fingerprint().with_parts(parts))

    def refresh(self) -> None:
        """Start a new pass over libraries: read other processes' entries, check all files again.

        Within one pass a file that several libraries depend on is checked once.
        """
        super().refresh()
        self._dependencies = _Dependencies()

    def recall(self, path: str) -> CacheEntry | None:
        """Return the entry of a library, if it is still valid; links in its path belong to the key.

        It costs one `stat`, and reads the library only where its identity is not enough: it has
        another one, or changed right before it was seen.
        """
        found = self._noted(path)
        if found is None:
            return None
        seen = see_again(found.seen)
        dependencies = self._dependencies.see_again(found.dependencies)
        if seen is None or dependencies is None:
            return None
        finding = self._still_true(found.finding)
        if (
            seen is not found.seen
            or dependencies is not found.dependencies
            or finding is not found.finding
        ):
            tried = found.tried and finding is not None
            before = _opened_by(found) if finding is None else found.opened_before
            found = CacheEntry(seen, found.facts, before, tried, finding, dependencies=dependencies)
            self._note(found)  # so that the bytes need not be read again
        return found

    def _still_true(self, finding: Finding | None) -> Finding | None:
        """Return a finding if the libraries that the plugin's code opened are unchanged."""
        if finding is None or not finding.opened:
            return finding
        opened = self._dependencies.see_again(finding.opened)
        if opened is finding.opened:
            return finding
        return None if opened is None else finding._replace(opened=opened)

    def installed_plugins(
        self,
        record: str,
        libraries: Callable[[], Iterable[str]],
        is_plugin: Callable[[str], bool | None],
    ) -> list[str]:
        """Return the libraries of a distribution that are plugins, in the order of its RECORD.

        Distributions bring hundreds of libraries, of which few or none are plugins, and each start
        asks for all of them. So neither a RECORD nor a library is read again before it changes.

        The file `record` may be missing. `libraries` reads it, and returns the libraries that may
        be plugins; `is_plugin` decides by reading one, and returns None where the result does not
        last. Raises ShortageError if a file cannot be read now.
        """
        try:
            (text,) = self._distributions.get(record) or ("null",)
            seen, rows = decode(_Distribution, _read_json(text)[0])
        except (ValueError, TypeError, RecursionError):
            seen, rows = None, ()
        is_same = seen is not None and seen.path == record and see_again(seen) is seen
        if not is_same:
            seen = see(record, read=False)
            known = {one.path: one for one in rows}
            rows = tuple([known.get(path, _Library(path)) for path in libraries()])
        checked = tuple([one if one.is_valid else one.read(is_plugin) for one in rows])
        if (not is_same or checked != rows) and seen is not None and see_again(seen) is seen:
            self._distributions.put(record, dumps(encode(_Distribution(seen, checked))))
        return [one.path for one in checked if one.is_plugin]

    def describe(self, probe: Probe, seen: SeenFile, began_ns: int) -> CacheEntry:
        """Return the new entry for a probe.

        `seen` is the library *before* it was probed (`modular_tf.discovery.file_identity.see`).
        `began_ns` is when the prober was made, in nanoseconds since the epoch: what changed since
        is not certain to be as the probe found it.
        """
        facts = LoadFacts.of(probe)
        storable = all(  # as long as the library's bytes are the same
            problem.rule in _BY_BYTES and problem.path in {None, seen.path}
            for problem in facts.problems
            if problem.is_error
        )
        libraries = [library.path for library in probe.libraries]
        others = [*probe.passed_over, *([LINKER_CACHE] if libraries else [])]
        dependencies = self._dependencies.seen_at(libraries, others, began_ns)
        before = self._opened_before(seen)
        if dependencies is None:
            return CacheEntry(seen, facts, before, storable=False)
        return CacheEntry(seen, facts, before, storable=storable, dependencies=dependencies)

    def _opened_before(self, seen: SeenFile) -> tuple[str, ...]:
        """Return what the code of these bytes opened from this folder, by any finding."""
        opened: dict[str, None] = {}
        for other in self._of_bytes(seen.sha256 or ""):
            if _are_neighbours(other.seen.path, seen.path):
                opened.update(dict.fromkeys(_opened_by(other)))
        return tuple(opened)

    def remember(self, remembered: CacheEntry) -> bool:
        """Store a library's entry if it is storable and still valid; return whether it was stored.

        The entry is that of `describe`, with what first contact found.
        """
        with suppress(ShortageError):
            if remembered.storable and see_again(remembered.seen) is not None:
                self._note(remembered)
                return True
        self.forget(remembered.seen.path)
        return False

    def forget(self, path: str) -> None:
        """Remove the entry of a library."""
        self._libraries.drop(path)

    def finding_for(self, known: CacheEntry) -> Finding | None:
        """Return the finding of the same bytes with the same libraries, None if there is none.

        The library may have been at another path then; or what the linker would find was in doubt
        and is as it was. From another folder its code may open other files, so a finding that names
        some holds for one folder only.
        """
        for other in self._of_bytes(known.sha256) if known.storable else ():
            if not other.tried or _libraries_of(other) != _libraries_of(known):
                continue
            found = self._still_true(other.finding)
            is_beside = _are_neighbours(other.seen.path, known.seen.path)
            if found is None or not found.opened or is_beside:
                return found
        return None

    @property
    def turn(self) -> Turn:
        """The turn among the processes that share the cache."""
        return Turn(self.directory)

    # -- rows -------------------------------------------------------------------------------------

    def _noted(self, path: str) -> CacheEntry | None:
        """Return the entry of a library, valid or not."""
        row = self._libraries.get(path)
        if row is None:
            return None
        sha256, dependencies, text = row
        try:
            value, _ = _read_json(text)
            found = decode(CacheEntry, [*value, []])
            if (found.seen.path, found.sha256) != (path, sha256):
                return None
            return found._replace(dependencies=self._dependencies.of_text(dependencies))
        except Exception:  # noqa: BLE001  (of whatever the file holds, nothing may come up)
            return None

    def _of_bytes(self, sha256: str) -> Iterator[CacheEntry]:
        """Yield the entries of all libraries with these bytes, valid or not."""
        rows, paths = self._by_sha256
        if rows is not self._libraries.rows:
            rows, paths = self._libraries.rows, {}
            for path, row in rows.items():
                paths.setdefault(row[0], []).append(path)
            self._by_sha256 = rows, paths
        changed = [path for path, row in [*self._libraries.changes.items()] if row]
        for path in dict.fromkeys((*paths.get(sha256, ()), *changed) if sha256 else ()):
            if (entry := self._noted(path)) is not None and entry.sha256 == sha256:
                yield entry

    def _note(self, entry: CacheEntry) -> None:
        text = dumps(encode(entry)[:-1])
        dependencies = self._dependencies.text_of(entry.dependencies)
        self._libraries.put(entry.seen.path, entry.sha256, dependencies, text)


class _Dependencies:
    """The dependencies of libraries during one pass. [any thread]

    Most libraries of an installation depend on the same few others, so each set of them is decoded,
    and each file checked, once.
    """

    def __init__(self) -> None:
        # A file's state is read once for each prober: it may have read what came after another.
        self._seen: dict[tuple[str, int], SeenFile | None] = {}
        self._identities: dict[str, FileIdentity | None] = {}
        self._sets: dict[str, tuple[SeenFile, ...]] = {}
        self._texts: dict[tuple[SeenFile, ...], str] = {}
        self._again: dict[int, tuple[tuple[SeenFile, ...], tuple[SeenFile, ...] | None]] = {}
        self._files_again: dict[SeenFile, SeenFile | None] = {}

    def seen_at(
        self, libraries: Sequence[str], others: Sequence[str], began_ns: int
    ) -> tuple[SeenFile, ...] | None:
        """Return the state of the libraries that a probe read, and of others, which may be missing.

        None if one is not certain to be as the probe found it: it changed since `began_ns`, when
        the prober was made, in nanoseconds since the epoch.
        """
        found: dict[str, SeenFile] = {}
        for path in (*libraries, *others):
            if (path, began_ns) not in self._seen:
                self._seen[path, began_ns] = see(path, read=False)
            seen = self._seen[path, began_ns]
            if seen is None or (seen.identity and seen.identity.may_be_newer(began_ns)):
                return None
            found[path] = seen
        gone = any(found[path].identity is None for path in libraries)
        return None if gone else tuple(found.values())

    def see_again(self, dependencies: tuple[SeenFile, ...]) -> tuple[SeenFile, ...] | None:
        """Return whether all files are unchanged, as `file_identity.see_again` decides."""
        key = id(dependencies)
        if key not in self._again:
            # With what was asked about, which keeps it alive and its id its own.
            self._again[key] = dependencies, self._seen_again(dependencies)
        return self._again[key][1]

    def _seen_again(self, dependencies: tuple[SeenFile, ...]) -> tuple[SeenFile, ...] | None:
        found = []
        for file in dependencies:
            if file not in self._files_again:
                self._files_again[file] = see_again(file, self._identities)
            seen = self._files_again[file]
            if seen is None:
                return None
            found.append(seen)
        same = all(one is other for one, other in zip(found, dependencies, strict=True))
        return dependencies if same else tuple(found)

    def of_text(self, text: str) -> tuple[SeenFile, ...]:
        """Return the dependencies in a text; an exception where it is damaged."""
        if text not in self._sets:
            self._sets[text] = decode(tuple[SeenFile, ...], _read_json(text)[0])
        return self._sets[text]

    def text_of(self, dependencies: tuple[SeenFile, ...]) -> str:
        """Return the text that has dependencies."""
        if dependencies not in self._texts:
            self._texts[dependencies] = dumps(encode(dependencies))
        return self._texts[dependencies]


def _opened_by(entry: CacheEntry) -> tuple[str, ...]:
    """Return the files that a plugin's code opened, by the finding of an entry or earlier ones."""
    opened = () if entry.finding is None else entry.finding.opened
    return tuple(dict.fromkeys((*entry.opened_before, *(seen.path for seen in opened))))


def _are_neighbours(one: str, other: str) -> bool:
    return os.path.dirname(one) == os.path.dirname(other)


def _libraries_of(remembered: CacheEntry) -> set[tuple[object, ...]]:
    return {
        (file.path, file.identity, file.sha256)
        for file in remembered.dependencies
        if file.identity is not None and file.path != LINKER_CACHE
    }
