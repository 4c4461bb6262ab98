"""Patterns of paths, matched level by level: kinds are asked for only where they matter."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from glob import has_magic
from typing import TYPE_CHECKING, Any

from fsspec.utils import glob_translate  # type: ignore[import-untyped]

from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import NotFoundError
from modular_tf.filesystem.child_names import reported_listing
from modular_tf.fsspec import entries, paths
from modular_tf.fsspec.listings import REFUSALS, Listings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    _Found = dict[str, entries.Entry | None]
    """Paths, with their entries where these are known."""


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
        only_directories = str(path).endswith("/")
        needs_kinds = detail or only_directories
        on_error = kwargs.get("on_error", "omit")
        found = self._matching(pattern, on_error, with_kinds=needs_kinds)
        if not needs_kinds:
            return list(found)
        known = self._known(found)
        if only_directories:
            known = {one: entry for one, entry in known.items() if entry["type"] == "directory"}
        return known if detail else list(known)

    def _matching(self, pattern: str, on_error: str, *, with_kinds: bool) -> _Found:
        """Return the paths that match a pattern with magic in it, sorted."""
        parts = pattern.split("/")
        magic = next(number for number, part in enumerate(parts) if has_magic(part))
        found: _Found = {"/".join(parts[:magic]) or self.root_marker: None}
        for number in range(magic, len(parts)):
            if not has_magic(parts[number]):
                found = {paths.join(one, parts[number]): None for one in found}
                continue
            directories = list(found) if number == magic else self._directories(found)
            matches = re.compile(glob_translate("/".join(parts[: number + 1]))).match
            is_last = number + 1 == len(parts)
            needs_kinds = with_kinds if is_last else has_magic(parts[number + 1])
            below = self._below(directories, on_error, with_kinds=needs_kinds)
            found = {name: entry for name, entry in below.items() if matches(name)}
        known = found if has_magic(parts[-1]) else self._known(found)
        return {name: known[name] for name in sorted(known)}

    def _below(self, directories: Sequence[str], on_error: str, *, with_kinds: bool) -> _Found:
        """Return the paths in directories, with their entries where the listings have them."""

        def listed(path: str) -> _Found:
            try:
                known = self._cached_listing(path)
                if known is not None:
                    return {entry["name"]: entry for entry in known}
                if not with_kinds:
                    return dict.fromkeys(self.ls(path, detail=False))
                described = self._listed(path, partial(reported_listing, with_statistics=True))
                return {
                    name: None if facts is None else entries.file_or_directory(name, facts)
                    for name, facts in described.items()
                }
            except OSError as error:
                is_refused = len(directories) == 1 and isinstance(error, REFUSALS)
                if is_refused or self._is_told(error, on_error):
                    raise
            return {}

        found: _Found = {}
        for some in results_at_once(listed, directories, self._at_once()):
            found.update(some)
        return found

    def _directories(self, names: Iterable[str]) -> list[str]:
        known = self._known(names)
        return [name for name, entry in known.items() if entry["type"] == "directory"]

    def _known(self, names: Iterable[str]) -> dict[str, entries.Entry]:
        """Return the entries of those that exist; those that are known already are not asked."""

        def ask(path: str) -> entries.Entry | None:
            with suppress(NotFoundError, NotADirectoryError):
                return self.info(path)
            return None

        found: _Found = dict(names) if isinstance(names, dict) else dict.fromkeys(names)
        unknown = [name for name, entry in found.items() if entry is None]
        found.update(zip(unknown, results_at_once(ask, unknown, self._at_once()), strict=True))
        return {name: entry for name, entry in found.items() if entry is not None}
