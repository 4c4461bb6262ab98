"""`ModularFileSystem`: any registered scheme as a filesystem of fsspec.

The synchronous operations run in the calling thread, and those on many files in a `Crew`: an
interrupt ends them in a second, and a forked child needs no event loop. The operations that
coroutines await (`_cat_file`, `_info`, ...) are the same ones in other threads.
"""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

import errno
import io
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache, partial
from glob import has_magic
from typing import IO, TYPE_CHECKING, Any, NoReturn

from fsspec.asyn import AsyncFileSystem, get_loop  # type: ignore[import-untyped]
from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped]
from fsspec.core import get_compression  # type: ignore[import-untyped]
from fsspec.implementations.local import (  # type: ignore[import-untyped]
    make_path_posix,
    trailing_sep,
)
from fsspec.utils import (  # type: ignore[import-untyped]
    glob_translate,
    isfilelike,
    other_paths,
    tokenize,
)

from modular_tf.concurrency.crew import Crew, results_at_once
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnimplementedError,
)
from modular_tf.filesystem.copying import CopyWatch, copy_through, read_all, write_whole
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.local_files import local
from modular_tf.filesystem.location import (
    FILE_AND_DIRECTORY,
    Location,
    Overlap,
    checked_listing,
    entered,
    incomplete,
    is_link,
    overlap,
)
from modular_tf.filesystem.streams import TextWriter
from modular_tf.filesystem.trees import Facts, Item, Removal, rename
from modular_tf.filesystem.uri import is_of_this_machine
from modular_tf.fsspec.awaited import AwaitedCalls
from modular_tf.fsspec.files import (
    DEFAULT_BLOCK_SIZE,
    CachedReader,
    ModularReader,
    ModularWriter,
)
from modular_tf.fsspec.options import Options, environment_of, public_part
from modular_tf.fsspec.origin import Origin, library_of, service_for
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from modular_tf.filesystem.files import FileStatistics
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.location import Identity
    from modular_tf.service.service import PluginService

Entry = dict[str, Any]
"""One file or directory as fsspec describes it: name, size, type, mtime (s), mtime_ns."""

_Entries = dict[str, Entry | None]
"""Paths, with their entries where these are known."""


@dataclass
class _Group:
    """Ranges of a file that are read together, and the part of each range, by its number."""

    path: str
    start: int | None
    end: int | None
    parts: list[tuple[int, slice]]


_LOCAL_SCHEME = "file"
_REFUSALS = (PermissionDeniedError, UnauthenticatedError)  # there may be files that are not shown
_GAP_OF_NETWORK = 1 << 18  # bytes between two ranges that cost less than another request
_LARGEST_READ = 1 << 22  # bytes of ranges that are read together at most
_SHORT_FILE = 1 << 23  # bytes of a file that is fetched by one read and needs no open file
_WHOLE_TREE: dict[str, Any] = {"detail": True, "on_error": "raise"}  # a part of one is no copy


class ModularFileSystem(AsyncFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """A scheme served by a plugin, for fsspec and everything built on it.

    Instances are thin: connections and caches belong to the plugin. They are therefore not kept
    in fsspec's instance cache (which would keep a closed service alive), and equal ones are
    equal by scheme and service. Listings are not cached unless `use_listings_cache` says so.
    [any thread] Transactions are not supported, nor is a time of creation: the C API has neither.

    A pickled instance carries scheme, configuration, and which library serves (distribution and
    version, or path). In another process the plugin is loaded again at the first use; in the same
    process the same service serves on. It carries the storage options too, secrets among them, as
    those of other filesystems do: keep it where you would keep the secrets.

    Storage options of other filesystems, as `key`, `secret` and `endpoint_url`, that say other than
    this process's environment are followed by an instance of the plugin: in a process of its own,
    one for each set of options, which is closed with the service.

    Args:
        scheme: The scheme, when the class does not say it (`filesystem_class`).
        service: The service that has it. Default: the one given to `register`, else
            `modular_tf.service.default.default_service()`.
        plugin: Path of a plugin to load instead, in a service of its own.
        config: Configuration of that service.
        auto_mkdir: Make missing parent directories when writing or copying, as a store without
            directories would.
        use_listings_cache: Remember listings until something changes them through this instance.
        listings_expiry_time: Seconds a remembered listing is good for; None for ever.
        max_paths: How many listings are remembered at most; None for all.
        asynchronous: Whether coroutines use it: they await `_cat_file`, `_ls` and the others, which
            make at most as many calls at once as the scheme allows.
        loop: Ignored; a coroutine's own loop is used.

    Raises:
        UnimplementedError: No plugin serves the scheme (TensorFlow's code for that).
        TypeError: A storage option is not one of the above, and the plugin has no variable for it:
            an ignored credential would be worse than an error. The message says what to do.
    """

    blocksize = DEFAULT_BLOCK_SIZE
    cachable = False
    mirror_sync_methods = False  # they exist already
    _last_change: object = None  # another object for each change, so that no thread misses one

    def __new__(cls, scheme: str | None = None, **_: Any) -> ModularFileSystem:  # noqa: D102, PYI034
        concrete = filesystem_class(scheme) if cls is ModularFileSystem and scheme else cls
        if concrete.protocol == "abstract":
            raise TypeError("ModularFileSystem needs a scheme: ModularFileSystem('ram')")
        return object.__new__(concrete)

    def __init__(
        self,
        scheme: str | None = None,
        *,
        service: PluginService | Origin | None = None,
        plugin: str | None = None,
        config: Any = None,
        auto_mkdir: bool = False,
        use_listings_cache: bool = False,
        listings_expiry_time: float | None = None,
        max_paths: int | None = None,
        asynchronous: bool = False,
        loop: object = None,
        **others: object,
    ) -> None:
        del loop
        if scheme not in (None, self.scheme):
            raise TypeError(f"{type(self).__name__} serves {self.scheme!r}, not {scheme!r}")
        super().__init__(
            asynchronous=True,  # or fsspec would start the thread of its loop, which is not needed
            use_listings_cache=use_listings_cache,
            listings_expiry_time=listings_expiry_time,
            max_paths=max_paths,
        )
        self.asynchronous = asynchronous
        self.auto_mkdir = auto_mkdir
        self._account_options = others
        self._environment: dict[str, str | None] | None = None if others else {}
        self._awaited = AwaitedCalls()
        self._serving: PluginService | Origin
        if isinstance(service, Origin):  # unpickling neither loads plugins nor fails without them
            self._serving = service.live() or service
        else:
            self._serving = self._checked(service or service_for(self.scheme, plugin, config))

    def __reduce__(self) -> tuple[Any, ...]:
        theirs = {"scheme", "service", "plugin", "config"}
        options = Options({k: v for k, v in self.storage_options.items() if k not in theirs})
        origin = self._serving
        if not isinstance(origin, Origin):
            origin = Origin.of(origin, self.scheme)
        return _restore, (origin, options)

    # -- service and identity -----------------------------------------------------------------

    @property
    def async_impl(self) -> bool:
        """Whether coroutines are to be used. Others need no event loop."""
        return bool(self.asynchronous)

    @property
    def loop(self) -> Any:
        """Fsspec's event loop, also in a forked child; None for an asynchronous instance."""
        return None if self.asynchronous else get_loop()

    def _checked(self, service: PluginService) -> PluginService:
        """Return a service that serves the scheme as the options require; raise if it does not."""
        self._environment = {}
        if self._account_options and service.owner(self.scheme) is not None:
            library = library_of(service, self.scheme)
            self._environment = environment_of(self.scheme, library, self._account_options)
        if not self._environment:  # else the plugin need not run in this process
            service.filesystem(self.scheme)
        return service

    @property
    def service(self) -> PluginService:
        """The service; one that came from another process loads its plugin at the first use.

        Raises:
            NotFoundError: This machine does not have the plugin.
        """
        if isinstance(self._serving, Origin):
            self._serving = self._checked(self._serving.service())
        return self._serving

    @property
    def filesystem(self) -> Filesystem:
        """The filesystem that serves the scheme now; a plugin can be replaced while it runs.

        Options that say other than the environment of this process are followed by an instance.
        """
        if self._instance_environment:
            return self.service.shared_instance(self.scheme, self._instance_environment)
        return self.service.filesystem(self.scheme)

    @property
    def scheme(self) -> str:
        """The scheme, which is also fsspec's protocol."""
        return str(self.protocol)

    @property
    def fsid(self) -> str:
        """A name for this filesystem that stays the same from session to session."""
        account = public_part(self._instance_environment)
        name = f"modular_tf:{self.scheme}:{self.filesystem.plugin}"
        return f"{name}:{account}" if account else name

    @property
    def _instance_environment(self) -> dict[str, str | None]:
        """The environment of the instance that serves; {} if the plugin itself does."""
        if self._environment is None:  # of an instance that was unpickled
            self._checked(self.service)
        return self._environment or {}

    @property
    def _fs_token(self) -> str:
        # The name of an instance has no secrets in it.
        environment = self._instance_environment
        name = self.service.instance_name(self.scheme, environment) if environment else ""
        return str(tokenize(self.scheme, Origin.key_of(self.service), self.auto_mkdir, name))

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Return the path of a URI: `s3://bucket/key` is `bucket/key`.

        `file` is the one scheme whose paths begin at a root of the machine and may be relative to
        the working directory, as in fsspec's own local filesystem.
        """
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = os.fspath(path)
        for prefix in (f"{cls.protocol}://", f"{cls.protocol}::"):
            if text.startswith(prefix):
                text = text.removeprefix(prefix) or cls.root_marker
                break
        if cls.protocol == _LOCAL_SCHEME:
            text = os.path.abspath(text.removeprefix("file:"))  # lexical, as a URI is
        return text.rstrip("/") or cls.root_marker

    def uri(self, path: Any) -> str:
        """Return the URI that the plugin is given for `path`."""
        return f"{self.scheme}://{self._strip_protocol(path)}"

    def start_transaction(self) -> NoReturn:
        """Raise: the operations of the C API take no part in transactions."""
        raise UnimplementedError(f"{self.scheme!r}: fsspec transactions are not supported")

    transaction = property(start_transaction)

    def _at_once(self, batch_size: int | None = None) -> int:
        """Return how many calls are made at once; `batch_size` is fsspec's, -1 sets no bound."""
        configured = self.service.calls_at_once(self.scheme)
        if batch_size is None or batch_size == -1:
            return configured
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it is -1 or at least 1")
        return min(configured, batch_size)

    def _each(
        self, function: Callable[[Any], Any], items: Iterable[Any], batch_size: int | None = None
    ) -> list[Any]:
        """Return the results of a function for each item, called at once; raise the first error."""
        return results_at_once(function, items, self._at_once(batch_size))

    # -- one path -----------------------------------------------------------------------------

    def info(self, path: Any, **_: Any) -> Entry:
        """Return the entry of one file or directory: name, size, type, mtime (s) and mtime_ns.

        Raises:
            NotFoundError: There is nothing at `path`.
        """
        path = self._strip_protocol(path)
        return self._cached_entry(path) or self._described(path)

    def _described(self, path: str) -> Entry:
        if path == self.root_marker:
            return {"name": path, "size": 0, "type": "directory"}
        return _entry(path, self.filesystem.stat(self.uri(path)))

    def exists(self, path: Any, **_: Any) -> bool:
        """Return whether something is there; an error other than "not found" is raised."""
        path = self._strip_protocol(path)
        if path == self.root_marker or self._cached_entry(path) is not None:
            return True
        return self.filesystem.path_exists(self.uri(path))

    def isfile(self, path: Any) -> bool:
        """Return whether `path` is a file; False when nothing is there.

        In a bucket, `isfile` and `isdir` may answer with what was read within the last second.
        """
        return self._is(path, "file")

    def isdir(self, path: Any) -> bool:
        """Return whether `path` is a directory; False when nothing is there."""
        return self._is(path, "directory")

    def _is(self, path: Any, kind: str) -> bool:
        path = self._strip_protocol(path)
        try:
            known = self._cached_entry(path)
            if known or path == self.root_marker or is_of_this_machine(self.scheme):
                return bool((known or self._described(path))["type"] == kind)
            # Some stores answer this by fewer requests than the rest.
            uri = self.uri(path)
            fs = self.filesystem
            is_directory = not fs.was_file_just_now(uri) and fs.is_directory(uri)
        except NotFoundError:
            return False
        return is_directory == (kind == "directory")

    def modified(self, path: Any) -> datetime:
        """Return when `path` was last changed, in UTC."""
        return datetime.fromtimestamp(self.info(path)["mtime_ns"] / 1e9, tz=timezone.utc)

    def sizes(self, paths: Iterable[Any]) -> list[int | None]:
        """Return the size of each path, by calls at once."""
        return self._each(self.size, paths)

    # -- the listings cache, where the user wants one -----------------------------------------

    def _cached_entry(self, path: str) -> Entry | None:
        """Return the entry of `path` in a cached listing; None if there is none."""
        if not self.dircache.use_listings_cache:
            return None
        for entry in self.dircache.get(self._parent(path), ()):
            if entry["name"] == path:
                found: Entry = entry
                return found
        is_listed = path in self.dircache
        return {"name": path, "size": 0, "type": "directory"} if is_listed else None

    def forget_listing(self, path: str) -> None:
        """Drop the cached listings of `path` and of the directories above it.

        Those come and go with what is in them, in stores without directories or by `auto_mkdir`.
        """
        if not self.dircache.use_listings_cache:
            return
        self._last_change = object()  # first: a listing that is under way now is not kept
        self.dircache.pop(path, None)
        while path != self.root_marker:
            path = self._parent(path)
            self.dircache.pop(path, None)

    def invalidate_cache(self, path: Any = None) -> None:
        """Drop cached listings, at `path` or all; with no path the plugin's own caches too."""
        if path is not None:
            self.forget_listing(self._strip_protocol(path))
            return
        self.forget_listings()
        self.filesystem.flush_caches()

    def forget_listings(self) -> None:
        """Drop the cached listings of all directories."""
        self._last_change = object()
        self.dircache.clear()

    # -- listings and trees -------------------------------------------------------------------

    def ls(self, path: Any, detail: bool = True, refresh: bool = False, **_: Any) -> list[Any]:
        """Return the entries of a directory, or of the one file at `path`, sorted by name.

        With `detail`, each entry costs the plugin one more call, made at once; a client that lists
        sizes needs no more calls.

        Raises:
            NotFoundError: There is nothing at `path`.
        """
        facts = Facts.STATISTICS if detail else Facts.NONE
        (found,) = self._listings([self._strip_protocol(path)], facts, refresh=refresh).values()
        return list(found.values() if detail else found)

    def _listings(
        self,
        directories: Sequence[str],
        facts: Facts = Facts.STATISTICS,
        *,
        refresh: bool = False,
        on_error: str | None = None,
        roots: Sequence[str] = (),
    ) -> dict[str, dict[str, Any]]:
        """Return the paths in each directory that can be listed; a file is listed as itself.

        Of `facts`, `STATISTICS` gives entries, each by a call unless its listing has it, `KIND`
        those that listings have, and `NONE` names. `on_error` is that of `find`, whose directories
        may vanish meanwhile; None raises for them too. With "raise" a directory may hold nothing
        that has no path, and no link that leads nowhere. Of `roots`, the store may refuse none.
        """
        change = self._last_change
        are_whole = on_error == "raise"

        def listed(path: str) -> _Entries | OSError:
            if not refresh and (cached := self.dircache.get(path)) is not None:
                return {entry["name"]: entry for entry in cached}
            failure: OSError | None = None
            try:
                found = checked_listing(
                    self.filesystem,
                    self.uri(path),
                    on_left_out="raise" if are_whole else "warn",
                    with_statistics=facts is not Facts.NONE,
                )
                if found.names:
                    known = {_join(path, name): found.statistics.get(name) for name in found.names}
                    return {one: _entry(one, stat) if stat else None for one, stat in known.items()}
            except (NotFoundError, FailedPreconditionError) as error:
                failure = error
            except OSError as error:
                return error
            try:  # some stores answer an empty list for a file, or for nothing at all
                is_directory = _is_directory(self._described(path))
            except OSError as error:
                return error
            return (failure or {}) if is_directory else {path: None}

        def described(path: str) -> Entry | None:
            try:
                return self._described(path)
            except NotFoundError:  # it has vanished
                if are_whole and self._is_link(path):
                    raise
                return None
            except ModularTFError:
                return _unknown(path)

        listings: dict[str, dict[str, Any]] = {}
        for path, listing in zip(directories, self._each(listed, directories), strict=True):
            if not isinstance(listing, OSError):
                listings[path] = listing
            elif isinstance(listing, NotFoundError) and on_error is not None:
                if self.filesystem.is_missing_bucket(listing):
                    raise listing
            elif on_error in (None, "raise") or (path in roots and isinstance(listing, _REFUSALS)):
                raise listing
        if facts is not Facts.STATISTICS:
            return listings
        unknown = [
            name
            for listing in listings.values()
            for name, entry in listing.items()
            if entry is None
        ]
        entries = dict(zip(unknown, self._each(described, unknown), strict=True))
        for path, listing in listings.items():
            whole = {name: entry or entries[name] for name, entry in listing.items()}
            listings[path] = {name: entry for name, entry in whole.items() if entry}
            if [*listing] != [path]:
                self.dircache[path] = [*listings[path].values()]
                if self._last_change is not change:  # the listing may be from before it
                    self.dircache.pop(path, None)
        return listings

    def walk(
        self,
        path: Any,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: str | Callable[[OSError], object] = "omit",
        above: tuple[Identity, ...] = (),  # those of the directories above
        **kwargs: Any,
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield each directory of a tree with its directories and its files, as fsspec does.

        A link that leads back to a directory above it is yielded with the directories, but not
        walked through. With `refresh`, directories in the listings cache are listed too.
        """
        try:
            above = entered((self.filesystem, self.uri(path)), above)
        except FailedPreconditionError:
            return
        yield from super().walk(path, maxdepth, topdown, on_error, above=above, **kwargs)

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

        The directories of a level are listed at once.

        Args:
            path: The root of the tree, or several; a file is found itself.
            maxdepth: How many levels to go down; None for all.
            withdirs: Return directories too, with the root.
            detail: Return entries.
            refresh: List what is in the listings cache too.
            on_error: "omit" what cannot be listed, or "raise" the error. What vanishes meanwhile
                is omitted, but not a root that the store refuses to list, or whose bucket is
                missing. Links that lead back to a directory above them, or nowhere, cannot be
                listed.
            follow_links: Go through links to directories too.
        """
        _require_depth(maxdepth)
        fs, is_strict = self.filesystem, on_error == "raise"
        roots = self._strip_protocol(path if isinstance(path, list) else [path])
        self._each(self._refuse_both, roots if is_strict else ())
        found: dict[str, Entry] = {}
        level: dict[str, tuple[Identity, ...]] = dict.fromkeys(roots, ())
        while level and maxdepth != 0:
            above: dict[str, tuple[Identity, ...]] = {}  # by directory, of its entries
            for directory, identities in level.items():
                try:
                    above[directory] = entered((fs, self.uri(directory)), identities)
                except FailedPreconditionError as error:
                    if is_strict:
                        uri = self.uri(directory)
                        endless = "it leads back to a directory above it, so the tree has no end"
                        raise FailedPreconditionError.of("get_children", uri, endless) from error
            level = {}
            listings = self._listings([*above], refresh=refresh, on_error=on_error, roots=roots)
            for directory, listing in listings.items():
                for name, entry in listing.items():
                    if is_strict and entry["type"] == "other":  # may be a directory
                        entry.update(self._described(name))
                    if withdirs or not _is_directory(entry):
                        found[name] = entry
                    if _is_directory(entry) and (follow_links or not self._is_link(name)):
                        level[name] = above[directory]
            maxdepth = None if maxdepth is None else maxdepth - 1
        for root in roots if withdirs else ():
            if root and root not in found:
                with suppress(NotFoundError):
                    found[root] = self.info(root)
        return dict(sorted(found.items())) if detail else sorted(found)

    def _refuse_both(self, path: str) -> None:
        """Raise `DataLossError` if a directory has the name of a file, which would be left out."""
        if self.filesystem.is_file_and_directory(self.uri(path)):
            raise incomplete(self.uri(path), [FILE_AND_DIRECTORY], self.filesystem.plugin)

    def _is_link(self, path: str) -> bool:
        return is_link(self.filesystem, self.uri(path))

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

    # -- patterns -----------------------------------------------------------------------------

    def glob(
        self,
        path: Any,
        maxdepth: int | None = None,
        detail: bool = False,
        withdirs: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Return the paths that match a pattern, sorted; with `detail` their entries by path.

        `*`, `?` and `[set]` match within one level, `**` any levels, at most `maxdepth`; a pattern
        that ends in a slash matches directories only. Without `**` and `detail`, names that match
        cost no call each: a listing has them. `on_error` is that of `find`.
        """
        pattern: str = self._strip_protocol(path)
        if "**" in pattern or not has_magic(pattern) or not withdirs:
            if not withdirs:  # older versions of fsspec do not take it
                kwargs["withdirs"] = False
            return super().glob(path, maxdepth=maxdepth, detail=detail, **kwargs)
        only_directories = str(path).endswith("/")
        parts = pattern.split("/")
        magic = next(number for number, part in enumerate(parts) if has_magic(part))
        found: _Entries = {"/".join(parts[:magic]) or self.root_marker: None}
        for number in range(magic, len(parts)):
            if not has_magic(parts[number]):
                found = {_join(one, parts[number]): None for one in found}
                continue
            directories = list(found)
            if number != magic:
                directories = [d for d, entry in self._known(found).items() if _is_directory(entry)]
            matches = re.compile(glob_translate("/".join(parts[: number + 1]))).match
            is_last = number + 1 == len(parts)
            needs_kinds = detail or only_directories if is_last else has_magic(parts[number + 1])
            listings = self._listings(
                directories,
                Facts.KIND if needs_kinds else Facts.NONE,
                on_error=kwargs.get("on_error", "omit"),
                roots=directories if len(directories) == 1 else (),
            )
            below = {name: entry for listed in listings.values() for name, entry in listed.items()}
            found = {name: below[name] for name in sorted(below) if matches(name)}
        if detail or only_directories or not has_magic(parts[-1]):
            found = dict(sorted(self._known(found).items()))
        if only_directories:
            found = {one: entry for one, entry in found.items() if _is_directory(entry)}
        return found if detail else list(found)

    def _known(self, names: Iterable[str]) -> dict[str, Entry]:
        """Return the entries of paths that exist; calls are made for those without an entry.

        A link that leads nowhere has an entry of unknown kind.
        """

        def described(path: str) -> Entry | None:
            with suppress(NotFoundError, NotADirectoryError):
                return self.info(path)
            return _unknown(path) if self._is_link(path) else None

        found: _Entries = dict(names) if isinstance(names, dict) else dict.fromkeys(names)
        unknown = [name for name, entry in found.items() if entry is None]
        found.update(zip(unknown, self._each(described, unknown), strict=True))
        return {name: entry for name, entry in found.items() if entry is not None}

    def expand_path(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        *,
        detail: bool = False,
        assume_literal: bool = False,
        **options: Any,
    ) -> Any:
        """Return all paths that a path, a pattern, or a list of them stands for, sorted.

        With `detail`, paths that were searched for have their entries, and others None.

        Raises:
            FileNotFoundError: There is nothing.
        """
        _require_depth(maxdepth)
        found: _Entries = {}
        paths = [path] if isinstance(path, (str, os.PathLike)) else [*path]
        for one in self._strip_protocol(paths):
            roots: _Entries = {one: None}
            depth = maxdepth
            if not assume_literal and has_magic(one):
                matches = self.glob(one, maxdepth=maxdepth, detail=detail, **options)
                roots = matches if detail else dict.fromkeys(matches)
                found.update(roots)
                depth = None if maxdepth is None else maxdepth - 1
            if recursive and depth != 0:
                if not roots:
                    raise FileNotFoundError(one)
                found.update(self.find([*roots], depth, withdirs=True, detail=True, **options))
            for root in roots:
                if root not in found and (not recursive or self.exists(root)):
                    found[root] = None
        if not found:
            raise FileNotFoundError(path)
        return dict(sorted(found.items())) if detail else sorted(found)

    # -- contents -----------------------------------------------------------------------------

    def cat_file(
        self, path: Any, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the bytes `start` to `end` of a file; negative ones count from its end."""
        path = self._strip_protocol(path)
        with self._no_directory(path):
            if not start and end is None:
                return self.filesystem.read_file(self.uri(path))
            first, last = start or 0, -1 if end is None else end
            if last < 0 or first < 0:
                first, last, _step = slice(start, end).indices(self._file_size(path))
            return self.filesystem.read_range(self.uri(path), first, max(0, last - first))

    def cat(
        self,
        path: Any,
        recursive: bool = False,
        on_error: str = "raise",
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the bytes of a file, or those of many by path, which are read at once.

        `on_error` is "raise" for the first error, "return" for errors instead of bytes, or "omit"
        for the files without one.
        """
        if recursive:
            found = self.expand_path(path, recursive=True, **_WHOLE_TREE)
            paths = [one for one, entry in found.items() if not _is_directory(entry)]
        else:
            paths = self.expand_path(path)
        if paths == [self._strip_protocol(path)] and not isinstance(path, list):
            return self.cat_file(paths[0], **kwargs)
        answers: dict[str, Any] = {}
        read = partial(self.cat_file, **kwargs)
        for outcome in Crew(self._at_once(batch_size)).run(read, paths):
            if outcome.error is None:
                answers[outcome.item] = outcome.result
            elif on_error == "raise" or not isinstance(outcome.error, Exception):
                raise outcome.error
            elif on_error == "return":
                answers[outcome.item] = outcome.error
        return answers

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        batch_size: int | None = None,
        **_: Any,
    ) -> list[Any]:
        """Return ranges of bytes of files, in the order of the arguments, read at once.

        Ranges near each other are read together, up to 4 MiB; each read opens its file, but in an
        object store.

        Args:
            paths: Which files; one may come often.
            starts: The first byte of each range, or one for all, as in `cat_file`.
            ends: The byte past each range, or one for all, as in `cat_file`.
            max_gap: Bytes between two ranges that are read together at most. Default: 256 KiB
                where a network is read, else 0.
            on_error: "return" errors instead of bytes, or "raise" the first one.
            batch_size: How many reads are made at once at most; -1 for as many as configured.
        """
        if not isinstance(paths, list):
            raise TypeError(f"expected a list of paths, found {paths!r:.80}")
        starts, ends = (
            list(limits) if hasattr(limits, "__iter__") else [limits] * len(paths)
            for limits in (starts, ends)
        )
        if not len(starts) == len(ends) == len(paths):
            raise ValueError(f"{len(paths)} paths, {len(starts)} starts and {len(ends)} ends")
        if max_gap is None:
            max_gap = 0 if is_of_this_machine(self.scheme) else _GAP_OF_NETWORK
        groups: list[_Group] = []
        wanted: dict[str, list[tuple[int, int, int]]] = {}
        for number, path in enumerate(self._strip_protocol(paths)):
            start, end = starts[number], ends[number]
            if end is None or end < 0 or (start or 0) < 0:  # counted from the end of the file
                groups.append(_Group(path, start, end, [(number, slice(None))]))
            else:
                wanted.setdefault(path, []).append((start or 0, max(start or 0, end), number))
        # `fsspec.utils.merge_offset_ranges` of older versions shortens a range that holds another.
        for path, ranges in wanted.items():
            first = last = 0
            parts: list[tuple[int, slice]] = []
            for start, end, number in sorted(ranges):
                too_long = max(last, end) - first > _LARGEST_READ
                if not parts or too_long or start - last > max_gap:
                    first, last, parts = start, end, []
                    groups.append(_Group(path, first, last, parts))
                last = groups[-1].end = max(last, end)
                parts.append((number, slice(start - first, end - first)))
        answers: list[Any] = [b""] * len(paths)
        read = lambda group: self.cat_file(group.path, group.start, group.end)  # noqa: E731
        for outcome in Crew(self._at_once(batch_size)).run(read, groups):
            error = outcome.error
            if error is not None and (on_error != "return" or not isinstance(error, Exception)):
                raise error
            for number, part in outcome.item.parts:
                answers[number] = error if outcome.result is None else outcome.result[part]
        return answers

    def _file_size(self, path: str) -> int:
        entry = self.info(path)
        if _is_directory(entry):
            raise self._is_a_directory(path)
        return int(entry["size"])

    def _is_a_directory(self, path: str, remedy: str = "") -> IsADirectoryError:
        return IsADirectoryError(f"{redacted(self.uri(path))} is a directory{remedy}")

    @contextmanager
    def _no_directory(
        self, path: str, make: Callable[..., object] | None = None, target: Any = None
    ) -> Iterator[None]:
        """Raise `IsADirectoryError`, or make `target`, if the body fails because of a directory."""
        try:
            yield
        except NotFoundError:
            raise
        except (ModularTFError, IsADirectoryError) as error:
            if not self.isdir(path):  # only now: this costs as much as a copy
                raise
            if make is None:
                raise self._is_a_directory(path) from error
            self._refuse_both(path)
            make(target, exist_ok=True)

    def open(
        self,
        path: Any,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Open a file as fsspec does; text that is written is known to its filesystem."""
        text = {k: kwargs[k] for k in ("encoding", "errors", "newline") if k in kwargs}
        is_written_text = "b" not in mode and "r" not in mode
        if is_written_text:  # what is refused must not have emptied the file
            io.TextIOWrapper(io.BytesIO(), **text)
        get_compression(self._strip_protocol(path), compression)
        common: dict[str, Any] = {"block_size": block_size, "cache_options": cache_options}
        if not is_written_text or compression:
            return super().open(path, mode, compression=compression, **common, **kwargs)
        others = {k: v for k, v in kwargs.items() if k not in text}
        binary = super().open(path, mode.replace("t", "") + "b", **common, **others)
        return TextWriter(self.filesystem, binary, **text)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        size: int | None = None,
        **_: Any,  # options that dask passes to the readers of other filesystems
    ) -> io.IOBase:
        if not autocommit:
            self.start_transaction()
        if mode != "rb":
            return self._open_for_writing(path, mode, block_size or DEFAULT_BLOCK_SIZE)
        with self._no_directory(path):
            file = self.filesystem.new_random_access_file(self.uri(path))
        if size is None:
            try:
                size = file.known_length()
                size = self._file_size(path) if size is None else size
            except BaseException:
                file.close()
                raise
        if cache_type is None:
            return ModularReader(self, path, file, size, block_size)
        cached: io.IOBase = CachedReader(
            self,
            path,
            file,
            size=size,
            block_size=block_size or DEFAULT_BLOCK_SIZE,
            cache_type=cache_type,
            cache_options=cache_options,
        )
        return cached

    def _open_for_writing(self, path: str, mode: str, block_size: int) -> io.IOBase:
        if mode not in {"wb", "ab", "xb"}:
            raise ValueError(f"mode {mode!r} is not one of 'rb', 'wb', 'ab', 'xb'")
        if block_size < 1:
            raise ValueError(f"block_size is {block_size}; it must be at least 1")
        uri, filesystem = self.uri(path), self.filesystem
        exists = mode != "wb" and filesystem.path_exists(uri)
        if mode == "xb" and exists:
            raise _exists_already(uri)
        position = self._file_size(path) if exists else 0
        opener = filesystem.new_appendable_file if mode == "ab" else filesystem.new_writable_file
        file = self._making_parents(path, lambda: opener(uri))
        return ModularWriter(
            self, path, filesystem, file, position=position, mode=mode, block_size=block_size
        )

    def pipe_file(self, path: Any, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write the bytes of a file; `mode="create"` refuses to replace one.

        Raises:
            AlreadyExistsError: Something is there and the mode is "create".
        """
        if mode == "create" and self.exists(path):
            raise _exists_already(self.uri(path))
        with self.open(path, "wb", **kwargs) as file:
            file.write(value)

    def pipe(
        self, path: Any, value: Any = None, batch_size: int | None = None, **kwargs: Any
    ) -> None:
        """Write the bytes of a file, or of many at once, given as a dictionary by path."""
        contents = path if isinstance(path, dict) else {path: value}
        self._each(
            lambda item: self.pipe_file(item[0], item[1], **kwargs), contents.items(), batch_size
        )

    # -- changes ------------------------------------------------------------------------------

    def mkdir(self, path: Any, create_parents: bool = True, **_: Any) -> None:
        """Create a directory, and with `create_parents` its missing parents.

        Raises:
            AlreadyExistsError: Something is there already.
            NotFoundError: A directory above it is missing and `create_parents` is False.
        """
        path = self._strip_protocol(path)
        uri = self.uri(path)
        if self.exists(path):
            raise _exists_already(uri)
        make = self.filesystem.recursively_create_dir if create_parents else None
        (make or self.filesystem.create_dir)(uri)
        self.forget_listing(path)

    def makedirs(self, path: Any, exist_ok: bool = False) -> None:
        """Create a directory and its missing parents.

        Raises:
            AlreadyExistsError: A file is there, or a directory and `exist_ok` is False.
        """
        try:
            self.mkdir(path)
        except AlreadyExistsError:
            if not (exist_ok and self.isdir(path)):
                raise

    def rmdir(self, path: Any) -> None:
        """Remove an empty directory."""
        path = self._strip_protocol(path)
        self.filesystem.delete_dir(self.uri(path))
        self.forget_listing(path)

    def rm_file(self, path: Any) -> None:
        """Remove one file."""
        path = self._strip_protocol(path)
        self.filesystem.delete_file(self.uri(path))
        self.forget_listing(path)

    def rm(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Remove files, and with `recursive` whole directories; many at once.

        Of a link only the link is removed, never its target. A directory with entries deeper than
        `maxdepth` cannot be removed. What cannot be removed does not stop the rest, but raises.

        Raises:
            IsADirectoryError: A directory is to be removed and `recursive` is False.
            NotFoundError: There is nothing at `path`.
        """
        is_by_levels = recursive and maxdepth is not None
        found = self.expand_path(path, is_by_levels, maxdepth, follow_links=False)
        directories: set[str] = set()
        if is_by_levels:
            links = set(filter(self._is_link, found))
            found = _not_below(found, links)
            known = self._known([one for one in found if one not in links])
            directories = {one for one, entry in known.items() if _is_directory(entry)}
            self._each(self._refuse_both, known.keys() - directories)
        elif recursive:  # a tree goes with all that is in it
            found = _not_below(found, set(found))
        job = Job(self._at_once(batch_size))
        removal = Removal(job, recursive=recursive and not is_by_levels)
        try:
            removal.run(
                Item.at(Location(self.filesystem, self.uri(one)))
                for one in found
                if one not in directories
            )
        finally:
            self.forget_listings()
        if job.failures and not recursive and self.isdir(job.failures[0].uri):
            raise self._is_a_directory(job.failures[0].uri, "; pass recursive=True")
        job.raise_first()
        for directory in sorted(directories, reverse=True):
            with suppress(NotFoundError):  # in a store it goes with the last file in it
                self.rmdir(directory)

    def _making_parents(
        self, path: str, action: Callable[[], Any], *, is_wanted: bool = False
    ) -> Any:
        """Call `action`; if the directory is missing, create it if wanted, and call again."""
        try:
            return action()
        except NotFoundError:
            if not (is_wanted or self.auto_mkdir):
                raise
            self.makedirs(self._parent(path), exist_ok=True)
        return action()

    def cp_file(self, path1: Any, path2: Any, **_: Any) -> None:
        """Copy one file within the scheme, by the plugin itself; a directory is only made."""
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        with self._no_directory(source, self.makedirs, target):
            copy = partial(self.filesystem.copy_file, self.uri(source), self.uri(target))
            self._making_parents(target, copy)
            self.forget_listing(target)

    # -- transfers ----------------------------------------------------------------------------

    def copy(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Copy files within the scheme, by fsspec's rules, many at once.

        A tree that cannot be listed whole is refused, and so is a file whose name a directory has
        too. `on_error` is "raise", or "ignore" for sources that are not found, which is the default
        with `recursive`.
        """
        may_miss = (on_error or ("ignore" if recursive else "raise")) == "ignore"

        def copy_one(source: str, target: str, **_: object) -> None:
            try:
                self.cp_file(source, target, **kwargs)
            except NotFoundError:
                if not may_miss or self._is_link(source):
                    raise
                directory = self._parent(self._strip_protocol(target))
                if self.exists(source) and not self.exists(directory):
                    raise

        found = self._pairs(path1, path2, recursive, maxdepth)
        self._transfer(found, self.makedirs, copy_one, DEFAULT_CALLBACK, batch_size)

    def get(
        self,
        rpath: Any,
        lpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **_: Any,
    ) -> None:
        """Copy files to this machine, by fsspec's rules, many at once.

        A tree that cannot be listed whole is refused, and so is a file whose name a directory has
        too. An interrupt leaves each file whole or as it was. The callback follows the files that
        have arrived, its branches follow bytes.
        """
        if isinstance(lpath, (str, os.PathLike)):
            lpath = make_path_posix(os.fspath(lpath))
        found = self._pairs(rpath, lpath, recursive, maxdepth, is_directory=os.path.isdir)
        self._transfer(found, os.makedirs, self.get_file, callback, batch_size)

    def get_file(
        self,
        rpath: Any,
        lpath: Any = None,
        callback: Any = DEFAULT_CALLBACK,
        outfile: IO[bytes] | None = None,
        size: int | None = None,
        **_: Any,
    ) -> None:
        """Copy one file to this machine, or into an open file; a directory is only made.

        A file that is known to be short, by its `size` in bytes, needs fewer requests.
        """
        path, progress = self._strip_protocol(rpath), _Progress.of(callback)
        source = Location(self.filesystem, self.uri(path))
        if outfile is not None or isfilelike(lpath):
            write = partial(_write_all, lpath if outfile is None else outfile)
            with self._no_directory(path):
                read_all(source, write, progress)
            return
        target = local(lpath)
        os.makedirs(os.path.dirname(target.uri), exist_ok=True)
        with self._no_directory(path, os.makedirs, lpath):
            if size is None or size > _SHORT_FILE:
                copy_through(*source, *target, progress, is_landing=True)
            elif overlap(source, target) is not Overlap.SAME:
                data = self.cat_file(path)
                progress.begun(len(data))
                write_whole(*target, lambda writer: writer.append(data), progress)
                progress.advance(len(data))

    def put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Copy files of this machine to here, by fsspec's rules, many at once.

        Links are followed, to directories too. A tree with a link that leads back to a directory
        above it, or nowhere, or with a directory that cannot be listed, is refused before anything
        is copied. The callback follows the files that have arrived, its branches follow bytes.
        """
        is_one = isinstance(lpath, (str, os.PathLike))
        lpath = make_path_posix(os.fspath(lpath)) if is_one else [*map(make_path_posix, lpath)]
        found = _LocalTrees(self.service)._pairs(  # noqa: SLF001
            lpath, rpath, recursive, maxdepth, is_directory=self.isdir
        )
        put_one = partial(self.put_file, **kwargs)
        self._transfer(found, self.makedirs, put_one, callback, batch_size)

    def put_file(
        self,
        lpath: Any,
        rpath: Any,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **_: Any,
    ) -> None:
        """Copy one file of this machine to here; a directory is only made.

        Missing directories above it are made.

        Raises:
            AlreadyExistsError: Something is there and the mode is "create".
        """
        path = self._strip_protocol(rpath)
        source, uri = local(lpath), self.uri(path)
        facts = source.filesystem.stat(os.fsdecode(lpath))  # whose error names a link
        if facts.is_directory:
            self.makedirs(path, exist_ok=True)
            return
        if mode == "create" and self.exists(path):
            raise _exists_already(uri)
        places = (*source, self.filesystem, uri)
        block = min(_SHORT_FILE, facts.length + 1)  # one more, so that a short file is one read
        copy = partial(copy_through, *places, _Progress.of(callback), block, is_landing=True)
        self._making_parents(path, copy, is_wanted=True)
        self.forget_listing(path)

    def _pairs(
        self,
        source: Any,
        target: Any,
        recursive: bool,
        maxdepth: int | None,
        *,
        is_directory: Callable[[Any], bool] | None = None,
        **options: Any,
    ) -> list[tuple[str, Any, Entry | None]]:
        """Return each source with its target and its entry, if that is known, by fsspec's rules.

        A directory that they leave out has no target. `is_directory` is for targets in another
        filesystem.
        """
        if isinstance(source, list) and isinstance(target, list):
            sources = self._strip_protocol(source)
            return [(*pair, None) for pair in zip(sources, target, strict=False)]
        found = self.expand_path(source, recursive, maxdepth, **_WHOLE_TREE, **options)
        is_one, is_inside = isinstance(source, (str, os.PathLike)), False
        left_out: set[str] = set()
        if is_one:
            source = os.fspath(source)
            found.update(self._known([path for path, entry in found.items() if entry is None]))
            if not recursive or maxdepth is not None:
                left_out = {path for path, entry in found.items() if _is_directory(entry)}
                self._each(self._refuse_both, left_out)
            if has_magic(source):
                is_inside = len(found) - len(left_out) == 1
            else:
                is_inside = not trailing_sep(source) and (
                    trailing_sep(target) or (is_directory or self.isdir)(target)
                )
        kept = [path for path in found if path not in left_out]
        targets = other_paths(kept, target, exists=is_inside, flatten=not is_one) if kept else []
        pairs = dict.fromkeys(left_out) | dict(zip(kept, targets, strict=True))
        return [(path, pairs[path], entry) for path, entry in found.items()]

    def _transfer(
        self,
        found: list[tuple[str, Any, Entry | None]],
        make_directory: Callable[..., object],
        transfer: Callable[..., None],
        callback: Any,
        batch_size: int | None,
    ) -> None:
        """Make directories, then transfer files at once; one thread at a time calls callbacks."""
        for _, target, entry in found:
            if _is_directory(entry) and target is not None:
                make_directory(target, exist_ok=True)
        files = [one for one in found if not _is_directory(one[2])]
        crew = Crew(self._at_once(batch_size))
        lock = ForkLock()

        def one(file: tuple[str, Any, Entry | None]) -> None:
            source, target, entry = file
            with lock:
                branch = callback.branched(source, target)
                progress = _Progress(branch.__enter__(), crew.check)
            try:
                transfer(source, target, callback=progress, size=entry and entry["size"])
            finally:
                with lock:
                    branch.__exit__(None, None, None)

        callback.set_size(len(files))
        for outcome in crew.run(one, files):
            outcome.get()
            callback.relative_update(1)

    # -- moves --------------------------------------------------------------------------------

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **_: Any,
    ) -> None:
        """Move a file or a directory; the plugin renames it where it can.

        A list or a pattern is copied, and what was copied is removed, and so are some levels of a
        directory: what lies deeper stays. What is moved to where it is stays.

        Raises:
            FailedPreconditionError: A link to a directory was to be moved with others.
            InvalidArgumentError: A directory was to be moved into itself, two files to one place,
                or a file to where another one is moved from; nothing was done.
            IsADirectoryError: A list has a directory and the targets are a list too; nothing was
                removed.
        """
        try:
            is_single = isinstance(path1, (str, os.PathLike)) and not has_magic(str(path1))
            if maxdepth is not None or not is_single:
                self._move_many(path1, path2, recursive=recursive, maxdepth=maxdepth)
                return
            source, target = self._strip_protocol(path1), self._strip_protocol(path2)
            if str(path2).endswith("/") or self.isdir(target):  # it takes the source in
                target = _join(target, source.rpartition("/")[2])
            if self.isdir(source):
                if Overlap.SAME in {self._overlap(source, target), self._overlap(source, path2)}:
                    return
                self._refuse_inside(source, target)
            place = Location(self.filesystem, self.uri(source))
            new_place = Location(self.filesystem, self.uri(target))
            self._making_parents(target, partial(rename, place, new_place, self._at_once()))
        finally:
            self.forget_listings()

    def _move_many(self, path1: Any, path2: Any, *, recursive: bool, maxdepth: int | None) -> None:
        """Copy what fsspec's rules make of the arguments, then remove exactly that."""
        found = self._pairs(path1, path2, recursive, maxdepth, follow_links=False)
        known = {source for source, _, entry in found if _is_directory(entry)}
        pairs = [(one, self._strip_protocol(to)) for one, to, _ in found if to is not None]
        sources, taken = dict(pairs), dict[str, str]()
        for source, target in pairs:  # one of two files would be lost
            if (other := taken.setdefault(target, source)) != source:
                raise self._immovable(source, target, f"where {self.uri(other)} is moved to")
            if sources.get(target, target) != target:
                raise self._immovable(source, target, "which is moved itself")
        self._each(self._refuse_both, [source for source, _ in pairs])
        for source in filter(self._is_link, sorted(known)):
            link = "it is a link to a directory; move it by itself"
            raise FailedPreconditionError.of("rename_file", self.uri(source), link)
        pairs = [pair for pair in pairs if self._overlap(*pair) is not Overlap.SAME]
        files = [pair for pair in pairs if pair[0] not in known]
        for source, target in files:
            if self._overlap(source, target) is Overlap.WITHIN:  # it would take it in, onto itself
                raise self._is_a_directory(target)
        directories = [pair for pair in pairs if pair[0] in known]
        for pair in directories:
            self._refuse_inside(*pair)
        for _, target in directories:
            self.makedirs(target, exist_ok=True)

        def copy_file(pair: tuple[str, str]) -> None:
            with self._no_directory(pair[0]):  # of a list to a list nobody has looked
                copy = partial(self.filesystem.copy_file, *map(self.uri, pair))
                self._making_parents(pair[1], copy)

        self._each(copy_file, files)
        self._each(self.rm_file, [source for source, _ in files])
        emptied = {source for source, _ in directories}.union(
            *(_above(source) for source, _ in files)
        )
        for source in sorted(emptied & known, reverse=True):
            with suppress(NotFoundError):  # in a store a directory goes with the last file
                if maxdepth is None or not self.ls(source, detail=False, refresh=True):
                    self.rmdir(source)

    def _overlap(self, one: Any, other: Any) -> Overlap:
        fs = self.filesystem
        return overlap((fs, self.uri(one)), (fs, self.uri(other)))

    def _refuse_inside(self, source: str, target: str) -> None:
        """Raise if a directory is moved into itself, which would delete it."""
        if self._overlap(source, target) is Overlap.HOLDS:
            raise self._immovable(source, target, "which lies within it")

    def _immovable(self, source: str, target: str, why: str) -> InvalidArgumentError:
        text = f"it cannot be moved to {self.uri(target)}, {why}"
        return InvalidArgumentError.of("rename_file", self.uri(source), text)

    # -- the operations that coroutines await -------------------------------------------------

    async def _walk(self, path: Any, **kwargs: Any) -> Any:  # by `walk`, directory by directory
        steps = self.walk(path, **kwargs)
        at_once = self._at_once()
        while (found := await self._awaited.make(partial(next, steps, None), at_once)) is not None:
            yield found


def _awaitable(name: str) -> Callable[..., Any]:
    """Return the coroutine function that makes an operation in another thread."""

    async def operation(self: ModularFileSystem, *args: Any, **kwargs: Any) -> Any:
        call = partial(getattr(self, name), *args, **kwargs)
        return await self._awaited.make(call, self._at_once())

    operation.__name__ = f"_{name}"
    return operation


for _name in (
    *("cat", "cat_file", "cat_ranges", "copy", "cp_file", "du", "exists", "expand_path", "find"),
    *("get", "get_file", "glob", "info", "isdir", "isfile", "ls", "makedirs", "mkdir", "mv"),
    *("pipe", "pipe_file", "put", "put_file", "rm", "rm_file", "rmdir", "size", "sizes"),
):
    setattr(ModularFileSystem, f"_{_name}", _awaitable(_name))


@cache
def filesystem_class(scheme: str) -> type[ModularFileSystem]:
    """Return the subclass that serves `scheme`: fsspec wants a class for each protocol.

    The class can be imported, and so pickled, as `modular_tf.fsspec.by_scheme.<scheme>`.
    """
    return type(
        scheme,
        (ModularFileSystem,),
        {
            "__module__": "modular_tf.fsspec.by_scheme",
            "__doc__": f"The files behind `{scheme}://`.",
            "protocol": scheme,
            "root_marker": "/" if scheme == _LOCAL_SCHEME else "",
        },
    )


def _restore(origin: Origin, options: dict[str, Any]) -> ModularFileSystem:
    return filesystem_class(origin.scheme)(service=origin, **options)


# -- entries and paths ----------------------------------------------------------------------------


def _entry(path: str, statistics: FileStatistics) -> Entry:
    """Return an entry; `mtime` is in seconds since 1970 (what pyarrow reads)."""
    return {
        "name": path,
        "size": 0 if statistics.is_directory else statistics.length,
        "type": "directory" if statistics.is_directory else "file",
        "mtime": statistics.mtime_nsec / 1e9,
        "mtime_ns": statistics.mtime_nsec,
    }


def _unknown(path: str) -> Entry:
    return {"name": path, "size": None, "type": "other"}


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry["type"] == "directory"


def _join(parent: str, name: str) -> str:
    return f"{parent.rstrip('/')}/{name}" if parent else name


def _above(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}


def _not_below(found: list[str], directories: set[str]) -> list[str]:
    return [one for one in found if directories.isdisjoint(_above(one))]


def _require_depth(maxdepth: int | None) -> None:
    if maxdepth is not None and maxdepth < 1:
        raise ValueError(f"maxdepth is {maxdepth}; it must be at least 1")


def _exists_already(uri: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"{uri} exists already", path=uri)


# -- transfers ------------------------------------------------------------------------------------


class _Progress(CopyWatch):
    """Passes the progress of a copy on to a callback of fsspec, and may end the copy."""

    def __init__(self, callback: Any, check: Callable[[], object] = lambda: None) -> None:
        self._callback = callback
        self._check = check

    @classmethod
    def of(cls, callback: Any) -> _Progress:
        """Return a callback's progress, or the one that `_transfer` passes instead."""
        return callback if isinstance(callback, cls) else cls(callback)

    def begun(self, length: int | None) -> None:
        self._check()
        self._callback.set_size(length)

    def advance(self, n_bytes: int) -> None:
        self._callback.relative_update(n_bytes)
        self._check()


class _LocalTrees(filesystem_class(_LOCAL_SCHEME)):  # type: ignore[misc]
    """The files of this machine as the source of `put`, by the rules of our trees."""

    filesystem = local("/").filesystem

    def __init__(self, service: PluginService) -> None:
        AsyncFileSystem.__init__(self, asynchronous=True)
        self._serving = service

    def _at_once(self, _batch_size: int | None = None) -> int:
        return 1

    def uri(self, path: Any) -> str:
        return str(path)


def _write_all(target: IO[bytes], data: memoryview) -> None:
    """Write all of a piece, as a raw file may write a part at a time.

    `BlockingIOError` if a file that does not block accepts no more now.
    """
    while data:
        count = target.write(data)
        if count is None and isinstance(target, io.RawIOBase):
            raise BlockingIOError(errno.EAGAIN, "the file takes no more bytes without blocking")
        data = data[len(data) if count is None else count :]  # some classes return nothing
