"""The scan cache: the results for a library, valid as long as its bytes are the same.

An entry is valid if the library and all files that its verdict depends on are unchanged. It belongs
to one state of the host; each state has a file of its own. A result that can change at any time,
such as a missing library, is not kept.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import SeenFile, see_again
from modular_tf.discovery.host_fingerprint import host_fingerprint, linking_parts
from modular_tf.discovery.linking.system_libraries import LINKER_CACHE
from modular_tf.discovery.load_facts import LoadFacts
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.user_directories import cache_directory
from modular_tf.rules import loading as rules
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.kept.claims import Claims
from modular_tf.service.kept.scan_cache.cache_entry import CacheEntry, entry_from_json
from modular_tf.service.kept.scan_cache.dependencies import Dependencies
from modular_tf.service.kept.scan_cache.installed_libraries import installed_plugins
from modular_tf.service.kept.storage.private_directory import PrivateDirectory
from modular_tf.service.kept.storage.record_file import RecordFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from modular_tf.discovery.host_fingerprint import HostFingerprint
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Finding
    from modular_tf.rules import Violation

__all__ = ["ScanCache"]

# 2: before, the finding of a plugin whose loading was under way could be kept, as one of nothing.
_TITLE = "modular_tf scan cache 2"
_PREFIX, _SUFFIX = "scan-", ".records"
_MOST_HOSTS = 32
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


class ScanCache:
    """The results of this user's processes on this host.

    Where nothing can be read or written, nothing is remembered beyond this process. What looks at
    libraries may raise `ShortageError`: nothing can be said of them now. [any thread]
    """

    def __init__(self, directory: PrivateDirectory, host: HostFingerprint) -> None:
        """Read the cache; `of_process` finds its directory.

        Args:
            directory: Where it is.
            host: What its entries depend on beside files.
        """
        title = f"{_TITLE} {dict(host.parts)}"
        self._records = RecordFile(directory, f"{_PREFIX}{host.key}{_SUFFIX}", title)
        self._dependencies = Dependencies(self._records)

    @classmethod
    def of_process(
        cls, environment: Mapping[str, str] | None = None, settings: Mapping[str, str] | None = None
    ) -> ScanCache:
        """Return the cache of the running process; an empty one where it has none.

        Args:
            environment: Instead of `os.environ`.
            settings: What else decides about plugins, such as rules that the user takes lightly.
        """
        variables = os.environ if environment is None else environment
        place = cache_directory(variables, privileged=is_privileged())
        parts = {**linking_parts(variables), **(settings or {})}
        host = host_fingerprint().with_parts(parts)
        return cls(PrivateDirectory(place), host)

    def refresh(self) -> None:
        """Start a new pass over libraries: read other processes' entries, look at all files again.

        Within one pass a file that several libraries depend on is looked at once.
        """
        self._records.refresh()
        self._dependencies = Dependencies(self._records)

    def recall(self, path: str) -> CacheEntry | None:
        """Return the entry of a library, if it is still valid.

        It costs one `stat`, and reads the library only where its identity does not tell enough:
        it has another one, or changed right before it was seen.

        Args:
            path: The library, as it was found; links are part of what is known.
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
            found = CacheEntry(seen, found.facts, dependencies, before, tried, finding)
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
        """Return the libraries of a distribution that are plugins; see `installed_libraries`."""
        return installed_plugins(self._records, record, libraries, is_plugin)

    def describe(self, probe: Probe, seen: SeenFile, began_ns: int) -> CacheEntry:
        """Return the new entry for a probe.

        Args:
            probe: The probe.
            seen: The library as it was seen *before* it was probed
                (`modular_tf.discovery.file_identity.see`).
            began_ns: When the prober was made, in nanoseconds since the epoch: what changed since
                is not certain to be as the probe found it.
        """
        facts = LoadFacts.of(probe)
        lasting = all(_lasts(problem, seen) for problem in facts.problems if problem.is_error)
        libraries = [library.path for library in probe.libraries]
        others = [*probe.passed_over, *([LINKER_CACHE] if libraries else [])]
        dependencies = self._dependencies.seen_at(libraries, others, began_ns)
        before = self._opened_before(seen)
        if dependencies is None:
            return CacheEntry(seen, facts, opened_before=before, lasting=False)
        return CacheEntry(seen, facts, dependencies, before, lasting=lasting)

    def _opened_before(self, seen: SeenFile) -> tuple[str, ...]:
        """Return what the code of these bytes opened from this folder, by any finding."""
        opened: dict[str, None] = {}
        for path in self._records.keys_with_digest(seen.sha256 or ""):
            other = self._noted(path) if _are_neighbours(path, seen.path) else None
            if other is not None and other.sha256 == seen.sha256:
                opened.update(dict.fromkeys(_opened_by(other)))
        return tuple(opened)

    def remember(self, remembered: CacheEntry) -> bool:
        """Store a library's entry if it is lasting and still valid; return whether it was stored.

        Args:
            remembered: As `describe` gives it, with what first contact found.
        """
        if not remembered.lasting or not _is_still_there(remembered.seen):
            self.forget(remembered.seen.path)
            return False
        self._note(remembered)
        return True

    def forget(self, path: str) -> None:
        """Remove the entry of a library."""
        self._records.drop(path)

    def finding_for(self, known: CacheEntry) -> Finding | None:
        """Return the finding of the same bytes with the same libraries, None if there is none.

        The library may have been at another path then; or what the linker would find was in
        doubt and is as it was. From another folder its code may open other files, so a finding
        that names some holds for one folder only.

        Args:
            known: As `describe` gives it.
        """
        for path in self._records.keys_with_digest(known.sha256) if known.lasting else ():
            other = self._noted(path)
            if other is None or not other.tried or not _same_bytes(other, known):
                continue
            found = self._still_true(other.finding)
            if found is None or not found.opened or _are_neighbours(path, known.seen.path):
                return found
        return None

    def claims(self, subject: str) -> Claims:
        """Return who finds out what there is to be remembered, among the processes that share it.

        Args:
            subject: What is found out.
        """
        return Claims(self._records.directory, f"{self._records.name} {subject}")

    def save(self) -> bool:
        """Write the entries for other processes; return whether that was possible."""
        if not self._records.has_changes:
            return True
        saved = self._records.save()
        if saved:
            self._prune()
        return saved

    # -- the file -------------------------------------------------------------------------------

    def _noted(self, path: str) -> CacheEntry | None:
        """Return the entry of a library, valid or not."""
        value = self._records.get(path)
        if value is None:
            return None
        try:
            return entry_from_json(path, value, self._dependencies.named)
        except Exception:  # noqa: BLE001  (of whatever the file holds, nothing may come up)
            return None

    def _note(self, remembered: CacheEntry) -> None:
        name = self._dependencies.name_of(remembered.dependencies)
        self._records.put(remembered.seen.path, remembered.as_json(name))

    def _prune(self) -> None:
        """Remove the files of the states of the host that were not used for the longest time."""
        directory = self._records.directory
        try:
            directory.remove_unfinished()
            changed_at = directory.changed_at()
        except ShortageError:  # the next process does it
            return
        caches = {
            name: changed
            for name, changed in changed_at.items()
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX)
        }
        for name in sorted(caches, key=caches.__getitem__)[: max(0, len(caches) - _MOST_HOSTS)]:
            directory.remove(name)


def _lasts(problem: Violation, seen: SeenFile) -> bool:
    """Return whether a problem remains as long as the library's bytes are the same."""
    return problem.rule in _BY_BYTES and problem.path in {None, seen.path}


def _is_still_there(seen: SeenFile) -> bool:
    """Return whether a file is unchanged since it was probed."""
    try:
        return see_again(seen) is not None
    except ShortageError:
        return False


def _opened_by(entry: CacheEntry) -> tuple[str, ...]:
    """Return the files that a plugin's code opened, by the finding of an entry or earlier ones."""
    opened = () if entry.finding is None else entry.finding.opened
    return tuple(dict.fromkeys((*entry.opened_before, *(seen.path for seen in opened))))


def _are_neighbours(one: str, other: str) -> bool:
    return os.path.dirname(one) == os.path.dirname(other)


def _same_bytes(one: CacheEntry, other: CacheEntry) -> bool:
    """Return whether two entries have the same bytes of library and dependencies."""
    return one.sha256 == other.sha256 and _libraries_of(one) == _libraries_of(other)


def _libraries_of(remembered: CacheEntry) -> set[tuple[object, ...]]:
    return {
        (file.path, file.identity, file.sha256)
        for file in remembered.dependencies
        if file.identity is not None and file.path != LINKER_CACHE
    }
