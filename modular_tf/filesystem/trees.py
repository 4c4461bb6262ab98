"""Whole trees: walked, copied, compared, moved and removed, once for all faces.

`Walk` walks, `Copying` copies and compares, `Removal` removes, `rename` moves within a filesystem
and `move_all` anything anywhere. All take their threads from a `Job`; what they cannot do or leave
out is in `Job.failures`, and the rest goes on. Places are one by identity (`location`), links are
never followed by what removes, and a link back to a directory above it ends a walk there. Of a name
that is a file and a directory, or of a key that no path leads to, nothing is left out in silence.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum, auto
from itertools import islice
from typing import TYPE_CHECKING

from modular_tf.concurrency.crew import Crew
from modular_tf.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from modular_tf.filesystem.copying import CopyWatch, copy_file
from modular_tf.filesystem.files import DeletedCounts, FileStatistics
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.location import (
    FILE_AND_DIRECTORY,
    Identity,
    Listing,
    Location,
    Overlap,
    checked_listing,
    entered,
    identity,
    is_link,
    overlap,
    refuse_overlap,
)
from modular_tf.filesystem.uri import dirname, is_of_this_machine, parse_uri, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from modular_tf.filesystem.filesystem import Filesystem

    Take = Callable[[str], bool]
    """Whether a file is worked on, by its path below the root, without a slash before it."""

FILE_LEFT_OUT = f"{FILE_AND_DIRECTORY}; the file was left out"
"""The report of a name that is both, where the directory is taken."""

# No system or store has paths this long: a tree that is deeper has no end.
_MAX_URI = 1 << 14


# -- walking ----------------------------------------------------------------------------------


class Facts(Enum):
    """What a walk finds out about the names in a directory; of several levels at least kinds."""

    NONE = auto()
    KIND = auto()
    STATISTICS = auto()


@dataclass(slots=True)
class Entry:
    """A file or directory of a walk, `depth` levels below where the walk began.

    `facts` are its statistics, if they were wanted and can be had, perhaps of its kind alone.
    `children` are the entries of a directory, while the walk is there; None if it was not listed.
    `above` are the identities of the directories above it.
    """

    location: Location
    facts: FileStatistics | None
    depth: int = 0
    children: list[Entry] | None = None
    above: tuple[Identity, ...] = ()

    @property
    def is_directory(self) -> bool:
        """Whether it is known to be a directory."""
        return self.facts is not None and self.facts.is_directory

    @property
    def size(self) -> int:
        """Bytes of a file; 0 for a directory, and where they are not known."""
        return self.facts.length if self.facts and not self.facts.is_directory else 0


class Walk:
    """A walk through trees, each directory before its entries, in the order of the names.

    What cannot be read is a failure of the job and does not stop the rest. `depth` levels are
    walked, None for all, 0 for the roots alone. `facts` are found out about listed names, each by a
    call unless the listing of its directory has them.
    """

    def __init__(
        self, job: Job, *, depth: int | None = None, facts: Facts = Facts.STATISTICS
    ) -> None:
        self._job = job
        self._depth = depth
        self._facts = facts

    def roots(self, locations: Iterable[Location]) -> list[Entry]:
        """Return the entries where the walk begins; one that does not exist is a failure."""
        found = []
        for outcome in Crew(self._job.at_once).run(self._root, list(locations)):
            if outcome.error is not None:
                self._job.fail(outcome.item.uri, outcome.error)
                continue
            facts, is_both = outcome.get()
            if is_both:
                self._job.fail(outcome.item.uri, FailedPreconditionError(FILE_LEFT_OUT))
            found.append(Entry(outcome.item, facts))
        return found

    def _root(self, location: Location) -> tuple[FileStatistics, bool]:
        """Return the statistics of a place, and whether a file has the name of that directory too.

        `InvalidArgumentError` for the root of a scheme whose buckets cannot be listed.
        """
        fs, uri = location
        scheme = scheme_of(uri)
        if self._depth == 0:
            return location.stat(), False
        if uri == f"{scheme}://" and not is_of_this_machine(scheme):
            names: list[str] = []
            with suppress(InvalidArgumentError, UnimplementedError):
                names = fs.listing(uri, is_thorough=False).names
            if not names:
                raise InvalidArgumentError(
                    f"{fs.plugin} does not list what there is; name it: {uri}BUCKET/", path=uri
                )
        facts = location.stat()
        if fs.is_file_and_directory(uri):
            return FileStatistics(0, facts.mtime_nsec, is_directory=True), True
        return facts, False

    def through(self, roots: Sequence[Entry]) -> Iterator[Entry]:
        """Yield the roots and all that is below them, as deep as wanted."""
        stack = list(reversed(roots))
        while stack:
            entry = stack.pop()
            if self._is_listed(entry):
                if entry.children is None:
                    coming = (one for one in reversed(stack) if one.children is None)
                    together = islice(filter(self._is_listed, coming), self._job.at_once - 1)
                    self._list([entry, *together])
                stack.extend(reversed(entry.children or ()))
            yield entry
            entry.children = None  # its consumer is done; a whole tree would stay in memory

    def _is_listed(self, entry: Entry) -> bool:
        return entry.is_directory and (self._depth is None or entry.depth < self._depth)

    def _list(self, directories: list[Entry]) -> None:
        """List directories, those that are walked through next together with the first."""
        crew = Crew(self._job.at_once)
        for outcome in crew.run(self._children, directories):
            uri = outcome.item.location.uri
            outcome.item.children = []
            if outcome.error is not None:
                self._job.fail(uri, outcome.error)
                continue
            outcome.item.children, left_out = outcome.get()
            for reason in left_out:
                self._job.fail(uri, FailedPreconditionError(reason))
        if self._facts is Facts.NONE:
            return

        def found(entry: Entry) -> FileStatistics:
            fs, uri = entry.location
            if self._facts is Facts.STATISTICS:
                return fs.stat(uri)
            return FileStatistics(0, 0, fs.is_directory(uri))

        listed = (child for one in directories for child in one.children or ())
        for outcome_of_child in crew.run(found, [one for one in listed if one.facts is None]):
            child, error = outcome_of_child.item, outcome_of_child.error
            if error is None:
                child.facts = outcome_of_child.get()
            # What is listed and not there is a link that leads nowhere, or gone meanwhile.
            elif not isinstance(error, NotFoundError) and not is_link(*child.location):
                self._job.fail(child.location.uri, error)

    def _children(self, entry: Entry) -> tuple[list[Entry], list[str]]:
        """Return the entries of a directory, and what of it no path leads to."""
        above = entered(entry.location, entry.above)
        fs, uri = entry.location
        found = fs.listing(uri, with_statistics=self._facts is not Facts.NONE)
        facts, depth = found.statistics, entry.depth + 1
        children = [
            Entry(entry.location.child(name), facts.get(name), depth, None, above)
            for name in found.names
        ]
        return children, found.left_out


# -- the work on trees ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A file or directory to work on.

    The `target` is where it arrives; of a removal it is the `source`. `path` is below the `root`,
    and empty for a root, whose own `root` is None. `facts` are its statistics, and `there` those of
    the target, where the listings of their directories had them. `is_both`: its name is that of a
    file and of a directory. `above` are the identities of the directories above it. `is_there`: the
    target has something by this name, as far as is known.
    """

    source: Location
    target: Location
    path: str = ""
    facts: FileStatistics | None = None
    is_both: bool = False
    root: Item | None = None
    above: tuple[Identity, ...] = ()
    is_there: bool = True
    there: FileStatistics | None = None

    @property
    def uri(self) -> str:
        return self.source.uri

    @property
    def is_link(self) -> bool:
        return is_link(*self.source)

    def is_directory(self) -> bool:
        """Return whether it is a directory, by its statistics or by a call."""
        return self.source.is_directory() if self.facts is None else self.facts.is_directory

    @classmethod
    def at(cls, location: Location, path: str = "", facts: FileStatistics | None = None) -> Item:
        return cls(location, location, path, facts)

    def entry(self, name: str, **known: object) -> Item:
        """Return the item of an entry of this directory."""
        path = f"{self.path}/{name}" if self.path else name
        target = self.target.child(name)
        return Item(self.source.child(name), target, path, **known)  # type: ignore[arg-type]


@dataclass
class _TreeWork:
    """The steps of a job on trees. [any thread]

    The job takes the entries of directories as further work, if it is `recursive`. `done` is called
    with each file that is done, or in a `dry_run`, which changes nothing, with what would be.
    `take` filters files, None for all; with a filter, directories stay.
    """

    job: Job
    done: Callable[[Item], object] = lambda _: None
    _: KW_ONLY
    recursive: bool = True
    take: Take | None = None
    dry_run: bool = False

    def run(self, items: Iterable[Item]) -> None:
        roots = list(items)
        self.job.totals.find(len(roots))
        self.job.run(self.step, roots)

    def step(self, item: Item) -> None:
        raise NotImplementedError

    def _is_taken(self, item: Item) -> bool:
        return not item.path or self.take is None or self.take(item.path)

    def _is_both(self, item: Item) -> bool:
        """Return whether a name is that of a file and a directory.

        Below the roots a listing shows it.
        """
        if item.is_both or item.path or not self.recursive:
            return item.is_both
        return item.source.filesystem.is_file_and_directory(item.uri)

    def _add_entries(self, entries: Sequence[Item]) -> None:
        """Go on with the entries of a directory instead of itself."""
        self.job.totals.find(len(entries) - 1)
        self.job.add(entries)


# -- copying and comparing --------------------------------------------------------------------


@dataclass
class Copying(_TreeWork):
    """Copies trees while they are listed. [any thread]

    Whether a place of an object store is a directory shows when it is opened as a file, and a file
    needs no other request. Of a name that is both, the directory is copied.

    Attributes:
        is_move: The sources are removed afterwards; links to directories are left, and `done` is
            called with items that have the statistics of before they were copied.
        moves_files: Each file is moved, instead of copied: a target may be its source by another
            name.
        is_equal: Whether a target's file is like its source, by their statistics: it is not copied
            then.
        is_mirror: The target is to have nothing else: its keys without a path are collected too.
        surplus: With `is_equal`, what only the target has.
        staying: Of a mirror, the keys of the target that have no path, by directory.
        behind_links: Links of the target to directories that have what the source lacks.
        is_source_empty: Whether the root has no entries.
        begun: Of a move, the paths of the files whose copies have begun.
    """

    is_move: bool = False
    moves_files: bool = False
    is_equal: Callable[[FileStatistics, FileStatistics], bool] | None = None
    is_mirror: bool = False
    surplus: list[Item] = field(default_factory=list)
    staying: list[tuple[str, list[str]]] = field(default_factory=list)
    behind_links: list[Location] = field(default_factory=list)
    is_source_empty: bool = False
    begun: set[str] = field(default_factory=set)

    def step(self, item: Item) -> None:
        if not item.path:
            refuse_overlap(item.source, item.target, is_move=self.is_move)
        if self._is_both(item):
            if not item.path and self.recursive:
                self.job.leave_out(item.uri, [FILE_LEFT_OUT])
            self._enter(item)
            return
        is_taken = self._is_taken(item)
        facts = item.facts
        if facts is None and not (is_taken and self._shows_its_kind(item)):
            facts = item.source.stat()
            is_in_store = item.source.filesystem.is_object_store
            if facts.is_directory and is_in_store and not self.recursive:
                facts = None if item.source.filesystem.is_file_and_directory(item.uri) else facts
        if facts is not None and facts.is_directory:
            self._enter(item)
            return
        if self.is_equal is not None and not item.path:
            raise FailedPreconditionError("is no directory; copy it with fs cp", path=item.uri)
        if not is_taken or self._is_there_already(item, facts):
            self.job.totals.find(-1)
            return
        try:
            self._copy_one(item, facts)
        except FailedPreconditionError:
            if facts is not None or not item.source.is_directory():
                raise
            self._enter(item)

    def _shows_its_kind(self, item: Item) -> bool:
        """Return whether a copy finds out what a place is, without statistics from before."""
        is_compared = self.is_equal is not None and (item.is_there or not item.path)
        is_copied = not (self.dry_run or self.is_move)
        return item.source.filesystem.is_object_store and is_copied and not is_compared

    def _is_there_already(self, item: Item, facts: FileStatistics | None) -> bool:
        """Return whether the target is like the source."""
        if self.is_equal is None or facts is None or not item.is_there:
            return False
        try:
            return self.is_equal(facts, item.there or item.target.stat())
        except NotFoundError:
            return False

    def _copy_one(self, item: Item, facts: FileStatistics | None) -> None:
        if self.dry_run:
            self.job.totals.end()
        else:
            if self.is_move:
                self.begun.add(item.path)
            with self.job.copying(item.target) as watch:
                if self.moves_files:
                    move_file(item.source, item.target, watch)
                else:
                    length = None if facts is None else facts.length
                    watch.begun(length)
                    is_new = not item.is_there
                    copy_file(item.source, item.target, watch, length=length, is_new=is_new)
        self.done(replace(item, facts=facts) if self.is_move else item)

    def _enter(self, item: Item) -> None:
        """Make the directory and add its entries."""
        if not self.recursive:
            raise FailedPreconditionError("is a directory; copy it with -r", path=item.uri)
        if self.is_move and (item.path or self.moves_files) and item.is_link:
            raise FailedPreconditionError("is a link to a directory, which a move leaves")
        above, root = self._identities_above_entries(item), item.root or item
        if overlap(item.source, item.target) is Overlap.SAME:
            raise FailedPreconditionError(f"{item.target.uri} is the same directory")
        found = checked_listing(*item.source, with_statistics=True)
        self.job.leave_out(item.uri, found.left_out)
        listed = self._listing_there(item)
        there = listed or Listing([])
        taken = set(there.names)
        if not item.path:
            self.is_source_empty = not found.names
        if self.is_equal is not None:
            self._collect_surplus(item, found, there)
        is_wanted = bool(found.names) or self.take is None
        if is_wanted and not taken and not self.dry_run:
            _make_directory(item.target, is_root=not item.path, is_empty=not found.names)
            is_kept = found.names or not self.is_move or item.target.is_directory()
            if not is_kept:  # it would be lost
                text = f"{item.uri} is empty, and {item.target.uri} cannot be made without a file"
                raise FailedPreconditionError(text, path=item.uri)
        children = [
            item.entry(
                name,
                facts=found.statistics.get(name),
                is_both=name in found.both,
                root=root,
                above=above,
                is_there=listed is None or name in taken,
                there=there.statistics.get(name),
            )
            for name in found.names
        ]
        differing = (
            one
            for one in children
            if one.there is None or one.is_both or not self._is_there_already(one, one.facts)
        )
        self._add_entries([*differing])

    def _identities_above_entries(self, item: Item) -> tuple[Identity, ...]:
        """Return the identities of a directory and of those above it, unless a link leads back."""
        above = entered(item.source, item.above)
        if item.root is None or above is item.above:
            return above
        if above[-1] == identity(*item.root.target):
            raise FailedPreconditionError("is where the copy arrives, and was left out")
        leads_back = overlap(item.root.source, item.target) is not Overlap.APART
        if leads_back and is_link(*item.target):
            raise FailedPreconditionError(
                f"was left out, for {item.target.uri} is a link that leads back to the source"
            )
        return above

    def _listing_there(self, item: Item) -> Listing | None:
        """Return the listing of the target, empty where it is missing; None where it is unknown.

        Within an object store nothing else refuses a file the name of a directory.
        """
        fs, uri = item.target
        if self.is_equal is None:
            is_within_store = fs.is_object_store and item.source.shares_store_with(item.target)
            if self.dry_run or not is_within_store:
                return None
        try:
            if item.is_there:
                return fs.listing(uri, is_thorough=self.is_mirror, with_statistics=True)
        except NotFoundError as error:
            if fs.is_missing_bucket(error):
                raise
        except PermissionDeniedError:  # a store may be written to and not listed
            if self.is_equal is not None:
                raise
            return None
        return Listing([])

    def _collect_surplus(self, item: Item, found: Listing, there: Listing) -> None:
        surplus = sorted(set(there.names).difference(found.names))
        if self.is_mirror:  # a name that is both goes with the surplus
            kept = there._replace(both=there.both.intersection(found.names))
            self.staying.append((item.target.uri, kept.left_out))
        if surplus and item.path and is_link(*item.target):
            self.behind_links.append(item.target)
            return
        for child in map(item.entry, surplus):
            is_both = child.target.name in there.both
            self.surplus.append(replace(child, source=child.target, is_both=is_both))


def _make_directory(target: Location, *, is_root: bool, is_empty: bool) -> None:
    """Make the directory that a copied one becomes, with the parents of a root.

    In an object store a directory is there as soon as something is in it.
    """
    filesystem = target.filesystem
    if filesystem.is_object_store and not is_empty:
        return
    if is_root:
        if not target.is_directory():
            filesystem.recursively_create_dir(target.uri)
        return
    with suppress(AlreadyExistsError):
        filesystem.create_dir(target.uri)


# -- removing ---------------------------------------------------------------------------------


@dataclass
class Removal(_TreeWork):
    """Removes trees while they are listed, or by one call where a filesystem has it. [any thread]

    Of a link only the link is removed. A name that is a file and a directory is removed as both.
    With `with_directories`, directories are removed in spite of a filter; one that is not empty
    then is a failure. With `by_entries`, the filesystem's own operation is not used. `copied` has
    statistics of files from before they were copied: a file that has others by now stays, and is a
    failure.
    """

    with_directories: bool = False
    by_entries: bool = False
    copied: Mapping[str, FileStatistics | None] = field(default_factory=dict)
    undeleted_files: list[str] = field(default_factory=list)
    undeleted_dirs: list[str] = field(default_factory=list)
    _directories: list[Item] = field(default_factory=list)

    @property
    def _is_whole(self) -> bool:
        return self.take is None and not self.dry_run

    def run(self, items: Iterable[Item]) -> None:
        super().run(items)
        if self._is_whole or (self.with_directories and not self.dry_run):
            by_depth: dict[int, list[Item]] = {}
            for item in self._directories:
                by_depth.setdefault(item.uri.rstrip("/").count("/"), []).append(item)
            for depth in sorted(by_depth, reverse=True):
                self.job.run(self._remove_directory, by_depth[depth])

    def step(self, item: Item) -> None:
        if self._is_both(item):
            if self.take is not None and not item.path:  # of others the listing was reported
                self.job.leave_out(item.uri, [FILE_LEFT_OUT])
            elif self.dry_run and self.take is None:
                self._end_one(item)
            self._enter(replace(item, is_both=True))
        elif not (is_taken := self._is_taken(item)) or self.dry_run:
            is_directory = not item.is_link and item.is_directory()
            if is_taken and not is_directory and item.facts is None:
                item.source.stat()  # whose error says that nothing is there
            if is_directory:
                self._enter(item)
            elif is_taken:
                self.job.totals.end()
                self.done(item)
            else:
                self.job.totals.find(-1)
        elif self._delete_unless_directory(item):
            self.job.totals.end()
            self.done(item)
        else:
            self._enter(item)

    def _delete_unless_directory(self, item: Item) -> bool:
        """Delete a file or a link; return False for a directory."""
        fs, uri = item.source
        try:
            if len(uri) > _MAX_URI:
                shown, text = f"{uri[:60]}...", "no tree is so deep"
                raise InternalError.of("delete_recursively", shown, text, plugin=fs.plugin)
            before = self.copied.get(item.path)
            if before is not None and (item.facts or item.source.stat()) != before:
                raise AbortedError(f"{uri!r} changed after it was copied, so it stays", path=uri)
            if fs.is_object_store and item.facts is None:  # a file takes no other request
                try:
                    fs.delete_file(uri)
                except FailedPreconditionError:
                    if item.source.is_directory():
                        return False
                    raise
            elif item.is_link or not item.is_directory():
                fs.delete_file(uri)
            else:
                may_be_link = self._is_whole and item.path and fs.disk_path(uri) is None
                return bool(may_be_link) and self._is_deleted_as_link(fs, uri)
        except ModularTFError:
            self.undeleted_files.append(uri)
            raise
        return True

    @staticmethod
    def _is_deleted_as_link(fs: Filesystem, uri: str) -> bool:
        """Return whether a directory was deleted as a link; the target of a link stays.

        Only on the disk can links be recognized; elsewhere a directory refuses to be deleted like a
        file, or is still there afterwards.
        """
        try:
            fs.delete_file(uri)
            return not fs.path_exists(uri)
        except PermissionDeniedError:
            raise
        except ModularTFError:
            return False

    def _end_one(self, item: Item) -> None:
        self.job.totals.find(1)
        self.job.totals.end()
        self.done(item)

    def _enter(self, item: Item) -> None:
        """Add what is in a directory, or remove it at once where that takes one call."""
        fs, uri = item.source
        if not self.recursive:
            raise FailedPreconditionError("is a directory; remove it with -r", path=uri)
        if self._is_whole and not self.by_entries and fs.does_itself("delete_recursively"):
            left = fs.delete_recursively(uri)
            if any(left):
                raise FailedPreconditionError(
                    f"{left.undeleted_files} files and {left.undeleted_dirs} directories"
                    " could not be removed",
                    path=uri,
                )
            self.job.totals.end()
            self.done(item)
            return
        self._directories.append(item)
        needs_kinds = not (fs.is_object_store and self._is_whole)
        found = checked_listing(fs, uri, with_statistics=needs_kinds)
        reported = found if self.take is not None else found._replace(both=frozenset())
        self.job.leave_out(uri, reported.left_out)
        facts, both = found.statistics, found.both
        entries = [item.entry(n, facts=facts.get(n), is_both=n in both) for n in found.names]
        self._add_entries(entries)

    def _remove_directory(self, item: Item) -> None:
        fs, uri = item.source
        try:
            with suppress(NotFoundError):  # in an object store it goes with the last file in it
                if not item.is_both or item.source.is_directory():
                    fs.delete_dir(uri)
            if item.is_both:
                fs.delete_file(uri)
                self._end_one(item)
            elif not item.path:
                self.done(item)
        except ModularTFError:
            self.undeleted_dirs.append(uri)
            raise


def remove_tree(fs: Filesystem, uri: str, at_once: int = 1) -> DeletedCounts:
    """Delete a file or a directory with all that is in it; of a link the link alone. [any thread]

    The result counts what a filesystem's own operation could not delete. Else the first failure is
    raised after the rest was deleted; its `undeleted` has the counts.
    """
    if fs.does_itself("delete_recursively"):
        return fs.delete_recursively(uri)
    return remove_entries(fs, uri, at_once)


def remove_entries(fs: Filesystem, uri: str, at_once: int = 1) -> DeletedCounts:
    """Do as `remove_tree`, entry by entry: the default of `Filesystem.delete_recursively`."""
    try:
        facts = _kind_if_there(fs, uri)
        if facts is None:
            text = "nothing is there"
            raise NotFoundError.of("delete_recursively", uri, text, plugin=fs.plugin)
    except ModularTFError as error:
        error.undeleted = DeletedCounts(0, 1)  # as in TensorFlow, where it is called a directory
        raise
    job = Job(at_once)
    removal = Removal(job, by_entries=True)
    removal.run([Item.at(Location(fs, uri), facts=facts)])
    counts = DeletedCounts(len(removal.undeleted_files), len(removal.undeleted_dirs))
    for failure in job.failures[:1]:
        if isinstance(failure.error, ModularTFError):
            failure.error.undeleted = counts
        raise failure.error
    return counts


def _kind_if_there(fs: Filesystem, uri: str) -> FileStatistics | None:
    """Return statistics that show the kind alone; None for nothing."""
    # A store takes one call. Some other plugins report a kind for what is missing.
    if not fs.is_object_store and not fs.path_exists(uri):
        return None
    with suppress(NotFoundError):
        return FileStatistics(0, 0, fs.is_directory(uri))
    return None


def create_dirs(fs: Filesystem, uri: str) -> None:
    """Create a directory and its missing parents, downwards from the nearest that exists."""

    def without_slash(one: str) -> str:
        return one.rstrip("/") if parse_uri(one).path.strip("/") else one

    missing: list[str] = []
    current, below = without_slash(uri), ""
    while parse_uri(current).path and current != below:
        facts = _kind_if_there(fs, current)
        if facts is not None:
            if facts.is_directory:
                break
            text = "it is not a directory"
            raise FailedPreconditionError.of(
                "recursively_create_dir", current, text, plugin=fs.plugin
            )
        missing.append(current)
        current, below = without_slash(dirname(current)), current
    for directory in reversed(missing):
        with suppress(AlreadyExistsError):
            fs.create_dir(directory)


# -- moving -----------------------------------------------------------------------------------


def rename(source: Location, target: Location, at_once: int = 1) -> None:
    """Move a file or directory within one filesystem, replacing a file or an empty directory.

    Where the filesystem renames files only, a directory is moved entry by entry: no data is copied,
    but it is not atomic, and a failure leaves part of the tree at either place.

    Raises:
        DataLossError: Something in a directory that is moved entry by entry has no path.
        FailedPreconditionError: The target is of the other kind, or a directory that is not empty.
        InvalidArgumentError: A directory was to be moved into itself.
        NotFoundError: The source, or the directory of the target, does not exist.
    """
    if not _is_renamed(source, target):
        _move_entries(source, target, at_once)


def _is_renamed(source: Location, target: Location) -> bool:
    """Rename what can be renamed; return False for a directory that is refused."""
    try:
        source.filesystem.rename_file(source.uri, target.uri)
    except (FailedPreconditionError, UnimplementedError):
        with suppress(FailedPreconditionError):  # under a file
            if source.filesystem.is_directory(source.uri):
                return False
        raise
    return True


def _move_entries(source: Location, target: Location, at_once: int) -> None:
    fs = source.filesystem
    found = overlap(source, target)
    if found is Overlap.SAME:
        return
    if is_link(*source):
        why = f"to {target.uri!r}: it is a link to a directory, which {fs.plugin} does not rename"
        raise FailedPreconditionError.of("rename_file", source.uri, why, plugin=fs.plugin)
    if found is Overlap.HOLDS:
        raise InvalidArgumentError.of("rename_file", source.uri, f"to {target.uri!r}: into itself")
    names = checked_listing(*source, on_left_out="raise").names
    if not fs.path_exists(target.uri):
        fs.create_dir(target.uri)
    elif not fs.is_directory(target.uri) or any(fs.listing(target.uri)):
        why = "the target is no empty directory"
        raise FailedPreconditionError.of("rename_file", target.uri, why, plugin=fs.plugin)
    children = [(source.child(name), target.child(name)) for name in names]
    outcomes = Crew(at_once).run(lambda pair: _is_renamed(*pair), children)
    for directory in [outcome.item for outcome in outcomes if not outcome.get()]:
        _move_entries(*directory, at_once)
    fs.delete_dir(source.uri)


def move_file(source: Location, target: Location, watch: CopyWatch) -> None:
    """Move one file; an existing target file is replaced.

    `FailedPreconditionError` if the target may be the same file by another name; both stay.
    """
    if source.shares_store_with(target):
        source.filesystem.rename_file(source.uri, target.uri)
    elif copy_file(source, target, watch):
        watch.advance(0)  # raises if the job was given up: then the target may be deleted
        source.filesystem.delete_file(source.uri)
    else:
        raise FailedPreconditionError(
            f"{target.uri} holds the same bytes and may be the same file; remove one of them",
            path=source.uri,
        )


def move_all(
    job: Job,
    items: Iterable[Item],
    done: Callable[[Item], object] = lambda _: None,
    *,
    take: Take | None = None,
    dry_run: bool = False,
) -> None:
    """Move files, many at once, and directories one after the other, their files many at once.

    Directories are not merged. One that its filesystem cannot rename is copied, and what was copied
    is removed if all of it has arrived.

    With the filter `take`, files go one by one, directories stay, and files may arrive in
    directories that exist; `done` is called with each file. Without, it is called with each item.
    """
    trees: list[Item] = []

    def step(item: Item) -> None:
        source, target = item.source, item.target
        refuse_overlap(source, target, is_move=True)
        if source.filesystem.is_file_and_directory(source.uri):
            raise FailedPreconditionError(
                "is a file and a directory, so nothing was moved; fs cp copies either, and fs rm -r"
                " removes both"
            )
        is_directory = source.stat().is_directory
        if is_directory and take is None and target.filesystem.path_exists(target.uri):
            raise AlreadyExistsError(f"{target.uri} exists already", path=target.uri)
        is_one_call = source.shares_store_with(target) and not source.filesystem.is_object_store
        if is_directory and (take is not None or not is_one_call):
            trees.append(item)
            return
        if dry_run:
            job.totals.end()
        elif is_directory:
            rename(source, target, job.at_once)
            job.totals.end()
        else:
            with job.copying(target) as watch:
                move_file(source, target, watch)
        done(item)

    roots = list(items)
    job.totals.find(len(roots))
    job.run(step, roots)
    job.totals.find(-len(trees))
    if take is not None:
        Copying(job, done, take=take, dry_run=dry_run, is_move=True, moves_files=True).run(trees)
        return
    for item in trees:
        if move_by_copy(job, item, dry_run=dry_run):
            done(item)


def move_by_copy(
    job: Job,
    item: Item,
    *,
    dry_run: bool = False,
    undo: Callable[[set[str]], object] = lambda _: None,
) -> bool:
    """Copy a tree, then remove what was copied of the source if all of it has arrived.

    What came to the source meanwhile stays, and what has changed since it was copied. `undo` is
    called with `Copying.begun` if not all has arrived. Return whether all of it was moved.
    """
    before, files = len(job.failures), job.totals.files
    copied: dict[str, FileStatistics | None] = {}  # of directories None

    def add(one: Item) -> None:
        copied[one.path] = one.facts
        path = one.path
        while path := path.rpartition("/")[0]:
            copied[path] = None

    copying = Copying(job, add, dry_run=dry_run, is_move=True)
    try:
        copying.run([item])
    except BaseException:
        undo(copying.begun)
        raise
    if len(job.failures) > before:
        undo(copying.begun)
        job.totals.files = files  # none of it was moved
        message = "not all of it could be copied, so it stays where it is"
        job.fail(item.uri, FailedPreconditionError(message, path=item.uri))
        return False
    if dry_run:
        return True
    files = job.totals.files
    removal = Removal(job, take=copied.__contains__, copied=copied, with_directories=True)
    removal.run([Item.at(item.source)])
    job.totals.files = files  # a file that was moved is one file
    return len(job.failures) == before
