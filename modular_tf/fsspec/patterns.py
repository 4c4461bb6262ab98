"""Patterns of paths, matched level by level: kinds are asked for only where they matter."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

import re
from contextlib import suppress
from glob import has_magic
from typing import TYPE_CHECKING, Any

from fsspec.utils import glob_translate  # type: ignore[import-untyped]

from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import NotFoundError
from modular_tf.fsspec import paths
from modular_tf.fsspec.listings import REFUSALS, Listings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.fsspec import entries


class Patterns(Listings):
    """The part of `ModularFileSystem` that finds what matches a pattern."""

    def glob(
        self,
        path: Any,
        maxdepth: int | None = None,
        detail: bool = False,
        withdirs: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Return the paths that match a pattern, sorted; with `detail` their entries by path.

        `*`, `?` and `[set]` match within one level, `**` any levels; a pattern that ends in a
        slash matches directories only. Without `**` and `detail`, names that match are not looked
        at: a listing has them.

        Args:
            path: The pattern.
            maxdepth: How many levels `**` goes down; None for all.
            detail: Return entries.
            withdirs: Return directories too.
            kwargs: Passed to `find`, as `refresh` and `on_error`, which also says what is done with
                a directory that cannot be listed where `find` is not called.
        """
        pattern: str = self._strip_protocol(path)
        if "**" in pattern or not has_magic(pattern) or not withdirs:
            return super().glob(path, maxdepth=maxdepth, detail=detail, withdirs=withdirs, **kwargs)
        found = self._matching(pattern, kwargs.get("on_error", "omit"))
        only_directories = str(path).endswith("/")
        if not (detail or only_directories):
            return found
        known = self._known(found)
        if only_directories:
            known = {one: entry for one, entry in known.items() if entry["type"] == "directory"}
        return known if detail else list(known)

    def _matching(self, pattern: str, on_error: str) -> list[str]:
        """Return the paths that match a pattern with magic in it, sorted."""
        parts = pattern.split("/")
        magic = next(number for number, part in enumerate(parts) if has_magic(part))
        found = ["/".join(parts[:magic]) or self.root_marker]
        for number in range(magic, len(parts)):
            if not has_magic(parts[number]):
                found = [paths.join(one, parts[number]) for one in found]
                continue
            directories = found if number == magic else self._directories(found)
            matches = re.compile(glob_translate("/".join(parts[: number + 1]))).match
            found = [name for name in self._names_below(directories, on_error) if matches(name)]
        return sorted(found if has_magic(parts[-1]) else self._known(found))

    def _names_below(self, directories: Sequence[str], on_error: str) -> list[str]:
        def listed(path: str) -> list[str]:
            try:
                return self.ls(path, detail=False)
            except OSError as error:
                is_refused = len(directories) == 1 and isinstance(error, REFUSALS)
                if is_refused or self._is_told(error, on_error):
                    raise
            return []

        found = results_at_once(listed, directories, self._at_once())
        return [name for names in found for name in names]

    def _directories(self, names: Sequence[str]) -> list[str]:
        known = self._known(names)
        return [name for name, entry in known.items() if entry["type"] == "directory"]

    def _known(self, names: Sequence[str]) -> dict[str, entries.Entry]:
        """Return the entries of those that exist."""

        def ask(path: str) -> entries.Entry | None:
            with suppress(NotFoundError, NotADirectoryError):
                return self.info(path)
            return None

        found = results_at_once(ask, names, self._at_once())
        return {name: e for name, e in zip(names, found, strict=True) if e is not None}
