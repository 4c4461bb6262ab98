"""The verbs that show what is there: `ls`, `find`, `glob`, `du` and `stat`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.fs.work import FileWork, human_readable_option, uris_argument
from modular_tf.cli.output import counted, size, when
from modular_tf.cli.process import Exit
from modular_tf.cli.values import COUNT, PATTERN, URI, byte_count
from modular_tf.filesystem.trees import Facts, Walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.filesystem.trees import Entry

_SIZE_COLUMNS = 12
_KINDS = {"f": "file", "d": "directory"}


def _kind(entry: Entry) -> str:
    """Return "directory", "file", or "other" for what is listed and has no statistics."""
    if entry.facts is None:
        return "other"
    return "directory" if entry.is_directory else "file"


def _as_object(entry: Entry) -> dict[str, Any]:
    facts = entry.facts
    return {
        "uri": entry.location.uri,
        "name": entry.location.name,
        "type": _kind(entry),
        "size": None if facts is None or facts.is_directory else facts.length,
        "mtime_ns": facts.mtime_nsec if facts is not None and facts.mtime_nsec > 0 else None,
    }


def _row(entry: Entry, name: str, *, human: bool) -> tuple[str, ...]:
    facts = entry.facts
    has_size = facts is not None and not facts.is_directory
    length = size(entry.size) if human else str(entry.size)
    return _kind(entry), length if has_size else "", when(facts.mtime_nsec if facts else 0), name


# -- ls and stat ------------------------------------------------------------------------------


@command()
@uris_argument("directory or file")
@click.option("-l", "long", is_flag=True, help="with kind, size and time")
@human_readable_option("with -l: ")
@click.option("-R", "--recursive", is_flag=True, help="also list the directories that are found")
def ls(
    call: Invocation, *, uris: tuple[str, ...], long: bool, human_readable: bool, recursive: bool
) -> Exit:
    """List what is in directories; a file is listed by itself."""
    with call.session() as service:
        work = FileWork(service, uris)
        kinds = Facts.KIND if recursive else Facts.NONE
        facts = Facts.STATISTICS if long or call.json else kinds
        walk = Walk(work, depth=None if recursive else 1, facts=facts)
        roots = walk.roots(work.expand_all(uris))
        if call.json:
            listings = []
            for entry in walk.through(roots):
                is_file = entry.depth == 0 and not entry.is_directory
                listed = [entry] if is_file else entry.children
                if listed is not None:
                    found = [_as_object(one) for one in listed]
                    listings.append({"uri": entry.location.uri, "entries": found})
            call.json_object(listings=listings)
            return work.exit_code
        counts: Counter[str] = Counter()

        def show(entries: list[Entry], names: list[str]) -> None:
            if not long:
                call.lines(names)
                return
            pairs = zip(entries, names, strict=True)
            rows = [_row(one, name, human=human_readable) for one, name in pairs]
            call.table(("type", "size", "changed", "name"), rows)
            for one in entries:
                counts["directories" if one.is_directory else "files"] += 1
                counts["bytes"] += one.size

        if files := [root for root in roots if not root.is_directory]:
            show(files, [file.location.uri for file in files])
        is_first = not files
        for entry in walk.through([root for root in roots if root.is_directory]):
            if entry.children is None:
                continue
            if recursive or max(len(uris), len(roots)) > 1:
                if call.terminal and not is_first:
                    call.line()
                call.line(f"{entry.location.uri}:")
            is_first = False
            show(entry.children, [child.location.name for child in entry.children])
    if long and call.terminal:
        n = counts["directories"]
        directories = "1 directory" if n == 1 else f"{n} directories"
        n_files = counted(counts["files"], "file")
        call.line(f"total: {n_files}, {directories}, {size(counts['bytes'])}")
    return work.exit_code


@command()
@uris_argument("file or directory")
@human_readable_option()
def stat(call: Invocation, *, uris: tuple[str, ...], human_readable: bool) -> Exit:
    """Show kind, size and modification time."""
    with call.session() as service:
        work = FileWork(service, uris)
        roots = Walk(work, depth=0).roots(work.expand_all(uris))
    rows = [_row(root, root.location.uri, human=human_readable) for root in roots]
    values = {"files": [_as_object(root) for root in roots]}
    call.show_object(values, lambda: call.table(("type", "size", "changed", "uri"), rows))
    return work.exit_code


# -- du ---------------------------------------------------------------------------------------


@command()
@uris_argument("directory or file")
@human_readable_option()
@click.option("-s", "--summarize", is_flag=True, help="only the total of each URI")
@click.option("--max-depth", type=COUNT, metavar="N", help="only directories up to N levels down")
def du(
    call: Invocation,
    *,
    uris: tuple[str, ...],
    human_readable: bool,
    summarize: bool,
    max_depth: int | None,
) -> Exit:
    """Show how many bytes the files in directories have, and in those below, as `du` does.

    A directory comes after what it holds, so the last line of each tree is its total.
    """
    deepest = 0 if summarize else max_depth

    def cells(usage: dict[str, Any]) -> tuple[str, str]:
        amount = size(usage["size"]) if human_readable else str(usage["size"])
        return amount.rjust(_SIZE_COLUMNS) if call.terminal else amount, usage["uri"]

    with call.session() as service:
        work = FileWork(service, uris)
        walk = Walk(work)
        usages = (
            {"uri": usage.uri, "size": usage.size, "files": usage.files}
            for usage in _usages(walk.through(walk.roots(work.expand_all(uris))))
            if deepest is None or usage.depth <= deepest
        )
        call.show_each("usages", usages, cells)
    return work.exit_code


@dataclass(slots=True)
class _Usage:
    """The bytes and the number of the files in a directory with all below it, or of one file."""

    uri: str
    depth: int
    size: int = 0
    files: int = 0


def _usages(entries: Iterable[Entry]) -> Iterator[_Usage]:
    """Yield the usage of each directory of walks, after those in it, and of files walked from."""
    around: list[_Usage] = []

    def left(depth: int) -> Iterator[_Usage]:
        """Yield the directories that a walk has left when it comes to an entry of this depth."""
        while around and around[-1].depth >= depth:
            usage = around.pop()
            if around:
                around[-1].size += usage.size
                around[-1].files += usage.files
            yield usage

    for entry in entries:
        yield from left(entry.depth)
        if entry.is_directory:
            around.append(_Usage(entry.location.uri, entry.depth))
        elif around:
            around[-1].size += entry.size
            around[-1].files += 1
        else:
            yield _Usage(entry.location.uri, entry.depth, entry.size, 1)
    yield from left(0)


# -- find and glob ----------------------------------------------------------------------------


@command()
@uris_argument("where to begin")
@click.option("--name", metavar="PATTERN", default="*", help="only names that match")
@click.option(
    "--type", "kind", type=click.Choice([*_KINDS]), help="only files (f) or directories (d)"
)
@click.option(
    "--min-size", type=byte_count, metavar="SIZE", help="only files of at least this size"
)
@click.option("--max-size", type=byte_count, metavar="SIZE", help="only files of at most this size")
@click.option("--newer", type=URI, help="only what changed after this one did")
@click.option("--max-depth", type=COUNT, metavar="N", help="no more than N levels down")
def find(
    call: Invocation,
    *,
    uris: tuple[str, ...],
    name: str,
    kind: str | None,
    min_size: int | None,
    max_size: int | None,
    newer: str | None,
    max_depth: int | None,
) -> Exit:
    """List everything in whole trees, each directory before what it holds.

    All conditions that are given must hold. Sizes may have units: 64K, 10M, 1.5G.
    """
    facts = Facts.KIND
    if (newer, min_size, max_size) != (None, None, None):
        facts = Facts.STATISTICS
    elif max_depth == 1 and kind is None and not call.json:
        facts = Facts.NONE
    after: int | None = None

    def is_wanted(entry: Entry) -> bool:
        is_file = entry.facts is not None and not entry.is_directory
        return (
            fnmatchcase(entry.location.name, name)
            and (kind is None or _KINDS[kind] == _kind(entry))
            and (min_size is None or (is_file and entry.size >= min_size))
            and (max_size is None or (is_file and entry.size <= max_size))
            and (after is None or (entry.facts is not None and entry.facts.mtime_nsec > after))
        )

    with call.session() as service:
        work = FileWork(service, uris)
        if newer is not None:
            with work.about(newer):
                after = work.location(newer).stat().mtime_nsec
        walk = Walk(work, depth=max_depth, facts=facts)
        roots = [] if work.failures else walk.roots(work.expand_all(uris))
        found = (
            {"uri": entry.location.uri, "type": _kind(entry)}
            for entry in filter(is_wanted, walk.through(roots))
        )
        n = call.show_each("found", found, lambda it: [it["uri"]])
    return work.exit_code or (Exit.DONE if n else Exit.NOTHING)


@command()
@argument(
    "patterns", type=PATTERN, nargs=-1, required=True, help="a URI or path with wildcards; quote it"
)
def glob(call: Invocation, *, patterns: tuple[str, ...]) -> Exit:
    """List what matches patterns: `*`, `?` and `[…]` within one level of a path."""
    with call.session() as service:
        work = FileWork(service, patterns)
        matches: list[str] = []
        for pattern in patterns:
            with work.about(pattern):
                matches += work.matching(pattern)
    call.show_each("matches", matches, lambda match: [match])
    return work.exit_code or (Exit.DONE if matches else Exit.NOTHING)
