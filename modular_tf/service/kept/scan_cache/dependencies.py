"""The other files that the verdict on a library depends on, each looked at once in a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import FileIdentity, SeenFile, see, see_again
from modular_tf.service.kept.scan_cache.cache_entry import (
    dependencies_as_json,
    dependencies_from_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.service.kept.storage.record_file import RecordFile

__all__ = ["Dependencies"]

_PREFIX = "dependencies "  # a library's key is its path, which begins with a slash
_DIGITS = 32


class Dependencies:
    """The dependencies of libraries during one pass. [any thread]

    Most libraries of an installation depend on the same few others. So a set of them is one record,
    whose name says what is in it: processes that write at the same time write the same.
    """

    def __init__(self, records: RecordFile) -> None:
        self._records = records
        self._seen: dict[tuple[str, int], SeenFile | None] = {}
        self._identities: dict[str, FileIdentity | None] = {}
        self._sets: dict[str, tuple[SeenFile, ...]] = {}
        self._names: dict[tuple[SeenFile, ...], str] = {}
        self._again: dict[int, tuple[tuple[SeenFile, ...], tuple[SeenFile, ...] | None]] = {}
        self._files_again: dict[SeenFile, SeenFile | None] = {}

    def seen_at(
        self, libraries: Sequence[str], others: Sequence[str], began_ns: int
    ) -> tuple[SeenFile, ...] | None:
        """Return the state of the files that a probe depends on.

        Args:
            libraries: Files that it read.
            others: Places that it looked at; nothing need be there.
            began_ns: When the prober was made, in nanoseconds since the epoch.

        Returns:
            None if one is not certain to be as the probe found it: it changed since then.
        """
        found: dict[str, SeenFile] = {}
        for path in (*libraries, *others):
            seen = self._seen_at(path, began_ns)
            if seen is None or (seen.identity and seen.identity.may_be_newer(began_ns)):
                return None
            found[path] = seen
        gone = any(found[path].identity is None for path in libraries)
        return None if gone else tuple(found.values())

    def _seen_at(self, path: str, began_ns: int) -> SeenFile | None:
        """Look at a file once for each prober, which may have read what came after another's."""
        key = path, began_ns
        if key not in self._seen:
            self._seen[key] = see(path, read=False)
        return self._seen[key]

    def see_again(self, dependencies: tuple[SeenFile, ...]) -> tuple[SeenFile, ...] | None:
        """Return whether all files are unchanged, as `file_identity.see_again` decides."""
        key = id(dependencies)
        if key not in self._again:
            # With what was asked about, which keeps it alive and its id its own.
            self._again[key] = dependencies, self._look_again(dependencies)
        return self._again[key][1]

    def _look_again(self, dependencies: tuple[SeenFile, ...]) -> tuple[SeenFile, ...] | None:
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

    def named(self, name: str) -> tuple[SeenFile, ...]:
        """Return the dependencies of a name.

        Raises:
            ValueError: There are none of that name, or they are damaged.
        """
        if name not in self._sets:
            self._sets[name] = dependencies_from_json(self._records.get(_PREFIX + name))
        return self._sets[name]

    def name_of(self, dependencies: tuple[SeenFile, ...]) -> str:
        """Return the name of dependencies, and store them under it."""
        if dependencies not in self._names:
            from hashlib import sha256  # noqa: PLC0415  (loads OpenSSL; needed for new libraries)

            value = dependencies_as_json(dependencies)
            name = sha256(repr(value).encode("utf-8", "backslashreplace")).hexdigest()[:_DIGITS]
            self._records.put(_PREFIX + name, value)
            self._names[dependencies] = name  # now another thread may name it
        name = self._names[dependencies]
        self._records.renew(_PREFIX + name)  # it must not go before those that name it
        return name
