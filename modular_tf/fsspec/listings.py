"""Listings of directories and of trees.

The C interface lists names without kind and size, so each entry costs a question of its own,
unless the filesystem offers `get_children_statistics`. They are asked at once, those of several
directories together, and only where kind or size is wanted.
"""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import (
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from modular_tf.filesystem.child_names import (
    FILE_AND_DIRECTORY,
    complete_listing,
    incomplete,
    reported_listing,
)
from modular_tf.filesystem.overlap import Identity, identity, is_link
from modular_tf.fsspec import entries, paths
from modular_tf.fsspec.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from modular_tf.filesystem.child_names import Listing
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics

    _ByName = dict[str, entries.Entry]

REFUSALS = (PermissionDeniedError, UnauthenticatedError)
"""Errors that mean that there may be files which may not be seen."""

_DIRECTORIES_TOGETHER = 64  # so that a walk goes on before all that lie side by side are listed


class Listings(Queries):
    """The part of `ModularFileSystem` that lists directories and trees."""

    def ls(self, path: Any, detail: bool = True, refresh: bool = False, **_: Any) -> list[Any]:
        """Return the entries of a directory, or of the one file at `path`, sorted by name.

        With `detail`, each entry costs the plugin one more question, asked in parallel; a client
        that lists sizes is asked nothing more.

        Raises:
            NotFoundError: There is nothing at `path`.
        """
        path = self._strip_protocol(path)
        if detail:
            (listing,) = self._listings([path], refresh=refresh)
            if isinstance(listing, OSError):
                raise listing
            return listing
        known = None if refresh else self._cached_listing(path)
        if known is None:
            return list(self._listed(path, reported_listing))
        return [entry["name"] for entry in known]

    def _listed(
        self, path: str, listing_of: Callable[[Filesystem, str], Listing]
    ) -> dict[str, FileStatistics | None]:
        """Return the paths in a directory, with the statistics that its listing has.

        A file is listed as itself.

        Raises:
            DataLossError: It is wanted whole, and something in it has no path.
        """
        try:
            found = listing_of(self.filesystem, self.uri(path))
        except (NotFoundError, FailedPreconditionError):
            if self._asked_info(path)["type"] == "directory":
                raise
            return {path: None}
        # Some stores answer an empty list for a file, or for nothing at all.
        if not found.names and self._asked_info(path)["type"] != "directory":
            return {path: None}
        return {paths.join(path, name): found.statistics.get(name) for name in found.names}

    def _listings(
        self, directories: Sequence[str], *, refresh: bool = False, are_whole: bool = False
    ) -> list[list[entries.Entry] | OSError]:
        """Return the entries of each directory, or the error why there are none.

        Args:
            directories: The directories.
            refresh: Ask the plugin also for what is in the listings cache.
            are_whole: A directory that holds something which has no path is an error.
        """
        found: dict[str, Any] = {
            path: None if refresh else self._cached_listing(path) for path in directories
        }
        asked = [path for path, known in found.items() if known is None]
        change = self._last_change
        listing_of = complete_listing if are_whole else reported_listing
        listed_in = partial(
            self._listed_or_error, listing_of=partial(listing_of, with_statistics=True)
        )
        names = results_at_once(listed_in, asked, self._at_once())
        listings = [listed for listed in names if isinstance(listed, dict)]
        unknown = [name for listed in listings for name, known in listed.items() if known is None]
        described = iter(entries.describe_all(self._asked_info, unknown, self._at_once()))
        for path, listed in zip(asked, names, strict=True):
            if isinstance(listed, OSError):
                found[path] = listed
                continue
            some = (
                next(described) if known is None else entries.file_or_directory(name, known)
                for name, known in listed.items()
            )
            found[path] = [entry for entry in some if entry is not None]
            if [*listed] != [path]:
                self._keep_listing(path, found[path], change)
        return [found[path] for path in directories]

    def _listed_or_error(
        self, path: str, listing_of: Callable[[Filesystem, str], Listing]
    ) -> dict[str, FileStatistics | None] | OSError:
        try:
            return self._listed(path, listing_of)
        except OSError as error:
            return error

    # -- trees --------------------------------------------------------------------------------

    def walk(
        self,
        path: Any,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: str | Callable[[OSError], object] = "omit",
        detail: bool = False,
        refresh: bool = False,
        **_: Any,
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield each directory of a tree with its directories and its files.

        Args:
            path: The root of the tree.
            maxdepth: How many levels to go down; None for all.
            topdown: Parents come before their children, and directories that the caller removes
                from what was yielded are passed over.
            on_error: What to do where the root cannot be listed: "omit" it, "raise" the error, or
                call a function with it. Other directories that cannot be listed are passed over.
            detail: Yield entries by name in place of names.
            refresh: Ask the plugin also for what is in the listings cache.

        A link that leads back to a directory above it is yielded with the directories, but not
        walked through.
        """
        _require_depth(maxdepth)
        path = self._strip_protocol(path)
        (listing,) = self._listings([path], refresh=refresh)
        if not isinstance(listing, OSError):
            options = {"topdown": topdown, "detail": detail, "refresh": refresh}
            yield from self._walked(path, listing, maxdepth, (), **options)
        elif on_error == "raise":
            raise listing
        elif callable(on_error):
            on_error(listing)

    def _walked(
        self,
        path: str,
        listing: list[entries.Entry],
        depth: int | None,
        above: tuple[Identity | None, ...],
        **options: bool,
    ) -> Iterator[tuple[str, Any, Any]]:
        dirs, files = _by_kind(path, listing)
        found = (path, dirs, files) if options["detail"] else (path, list(dirs), list(files))
        if options["topdown"]:
            yield found
        if depth is None or depth > 1:
            above = (*above, self._identity(path))
            below = [paths.join(path, name) for name in found[1]]
            below = [one for one in below if (self._identity(one) or 0) not in above]
            left = None if depth is None else depth - 1
            for some in _slices(below):
                listings = self._listings(some, refresh=options["refresh"])
                for directory, entries_below in zip(some, listings, strict=True):
                    if not isinstance(entries_below, OSError):
                        yield from self._walked(directory, entries_below, left, above, **options)
        if not options["topdown"]:
            yield found

    def find(
        self,
        path: Any,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        refresh: bool = False,
        on_error: str = "omit",
        follow_links: bool = True,
        **_: Any,
    ) -> Any:
        """Return the files of a tree, sorted; with `detail` their entries by path.

        Args:
            path: The root of the tree; a file is found itself.
            maxdepth: How many levels to go down; None for all.
            withdirs: Return directories too, with the root.
            detail: Return entries.
            refresh: Ask the plugin also for what is in the listings cache.
            on_error: "omit" what cannot be listed, or "raise" the error. What vanishes meanwhile
                is omitted, but not a root that the store refuses to list, or whose bucket is
                missing. A link that leads back to a directory above it cannot be listed.
            follow_links: Go through links to directories too.
        """
        _require_depth(maxdepth)
        path = self._strip_protocol(path)
        if on_error == "raise" and self.filesystem.is_file_and_directory(self.uri(path)):
            raise incomplete(self.uri(path), [FILE_AND_DIRECTORY], self.filesystem.plugin)
        found: _ByName = {}
        options = {"refresh": refresh, "follow_links": follow_links}
        for entry in self._entries_below(path, maxdepth, on_error, **options):
            if withdirs or entry["type"] != "directory":
                found[entry["name"]] = entry
        if withdirs and path not in ("", *found) and (found or self.isdir(path)):
            found[path] = self.info(path)
        return {name: found[name] for name in sorted(found)} if detail else sorted(found)

    def _entries_below(
        self, root: str, maxdepth: int | None, on_error: str, *, refresh: bool, follow_links: bool
    ) -> Iterator[entries.Entry]:
        """Yield all entries of a tree, level by level."""
        level: dict[str, tuple[Identity, ...]] = {root: ()}  # with what is above each of them
        while level and maxdepth != 0:
            below: dict[str, tuple[Identity, ...]] = {}
            for some in _slices(list(level)):
                are_whole = on_error == "raise"
                listings = self._listings(some, refresh=refresh, are_whole=are_whole)
                for directory, listing in zip(some, listings, strict=True):
                    is_refused = directory == root and isinstance(listing, REFUSALS)
                    found = self._known_entries(listing, "raise" if is_refused else on_error)
                    yield from found
                    if maxdepth == 1:
                        continue
                    known = self._identity(directory)
                    above = level[directory] if known is None else (*level[directory], known)
                    for entry in found:
                        name = entry["name"]
                        if entry["type"] == "directory" and self._is_entered(
                            name, above, on_error, follow_links=follow_links
                        ):
                            below[name] = above
            level = below
            maxdepth = None if maxdepth is None else maxdepth - 1

    def _is_entered(
        self, path: str, above: tuple[Identity, ...], on_error: str, *, follow_links: bool
    ) -> bool:
        """Return whether a walk goes into a directory.

        Raises:
            FailedPreconditionError: It is one of the directories above it, and `on_error` is
                "raise".
        """
        if not above:  # of a store, which has no links
            return True
        if not follow_links and self._is_link(path):
            return False
        is_loop = self._identity(path) in above
        if is_loop and on_error == "raise":
            uri = self.uri(path)
            raise FailedPreconditionError(
                f"{uri} leads back to a directory above it, so the tree has no end",
                path=uri,
                operation="get_children",
            )
        return not is_loop

    def _identity(self, path: str) -> Identity | None:
        return identity(self.filesystem, self.uri(path))

    def _is_link(self, path: str) -> bool:
        return is_link(self.filesystem, self.uri(path))

    def _known_entries(
        self, listing: list[entries.Entry] | OSError, on_error: str
    ) -> list[entries.Entry]:
        """Return the entries of a listing; raise, if that is wanted, where it is not complete."""
        if isinstance(listing, OSError):
            if self._is_told(listing, on_error):
                raise listing
            return []
        if on_error == "raise":
            for number, entry in enumerate(listing):
                if entry["type"] == "other":  # may be a directory; asking again tells the error
                    listing[number] = self._asked_info(entry["name"])
        return listing

    def _is_told(self, error: OSError, on_error: str) -> bool:
        """Return whether a directory that cannot be listed ends what lists it.

        Where not even its bucket is there it always does.
        """
        if isinstance(error, NotFoundError):
            return self.filesystem.is_missing_store(error)
        return on_error == "raise"

    def du(
        self,
        path: Any,
        total: bool = True,
        maxdepth: int | None = None,
        withdirs: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return the bytes of all files of a tree, or those of each by path with `total=False`."""
        found = self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True, **kwargs)
        sizes = {name: entry["size"] for name, entry in found.items()}
        return sum(size or 0 for size in sizes.values()) if total else sizes

    def sizes(self, paths: Iterable[Any]) -> list[int | None]:
        """Return the size of each path, asked for at once."""
        return results_at_once(self.size, paths, self._at_once())


def _by_kind(path: str, listing: list[entries.Entry]) -> tuple[_ByName, _ByName]:
    """Return directories and files by name; a file that was listed as itself has none."""
    dirs: _ByName = {}
    files: _ByName = {}
    for entry in listing:
        name = "" if entry["name"] == path else entry["name"].rpartition("/")[2]
        (dirs if entry["type"] == "directory" else files)[name] = entry
    return dirs, files


def _slices(directories: list[str]) -> Iterator[list[str]]:
    rest = iter(directories)
    while some := list(islice(rest, _DIRECTORIES_TOGETHER)):
        yield some


def _require_depth(maxdepth: int | None) -> None:
    if maxdepth is not None and maxdepth < 1:
        raise ValueError(f"maxdepth is {maxdepth}; it must be at least 1")
