"""The verbs that change files: `cp`, `mv`, `rm`, `sync` and `mkdir`."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.fs.work import FileWork, ManyFilesCommand, Rules, uris_argument
from modular_tf.cli.output import report_error
from modular_tf.cli.process import Exit
from modular_tf.cli.values import SOURCE, TARGET
from modular_tf.errors import FailedPreconditionError
from modular_tf.filesystem.copying import COPY_BLOCK, read_all, require_all_read, write_whole
from modular_tf.filesystem.location import Location, Overlap, is_one_name, overlap
from modular_tf.filesystem.trees import Copying, Item, Removal, move_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from io import BufferedReader

    from modular_tf.filesystem.files import FileStatistics, WritableFile
    from modular_tf.service.service import PluginService

STANDARD = "-"  # standard input or output

_PARTICIPLES = {"copy": "copied", "move": "moved", "remove": "removed", "delete": "deleted"}
_SECOND_NS = 10**9  # the resolution of the times that stores keep


class _Changes(FileWork):
    """The work of a verb, with what it has changed: lines of a rehearsal, or entries of the JSON.

    `words` are the kinds of its changes, the first of which the summary counts.
    """

    def __init__(
        self,
        call: Invocation,
        service: PluginService,
        uris: Iterable[str],
        rules: Rules,
        *words: str,
    ) -> None:
        super().__init__(service, uris, jobs=rules.jobs, quiet=rules.quiet)
        self._call = call
        self._is_rehearsal = rules.dry_run
        self._lists: dict[str, list[Any]] = {_PARTICIPLES[word]: [] for word in words}

    def note(self, word: str, item: Item) -> None:
        """Note a copy, a move or a removal. [any thread]"""
        has_target = word in ("copy", "move")
        if self._call.json:
            pair = {"from": item.source.uri, "to": item.target.uri}
            self._lists[_PARTICIPLES[word]].append(pair if has_target else item.uri)
        elif self._is_rehearsal:
            uris = (item.source.uri, item.target.uri) if has_target else (item.uri,)
            self._call.row((word, *uris))

    def end(self) -> Exit:
        """Write the summary or the JSON object; return the exit status."""
        participle = next(iter(self._lists))
        self.summarize(f"to be {participle}" if self._is_rehearsal else participle)
        if self._call.json:
            rehearsal = {"dry_run": True} if self._is_rehearsal else {}
            values = {**self._lists, "totals": self.totals_as_object(), **rehearsal}
            self._call.json_object(**values)
        return self.exit_code


_target_argument = argument("target", type=TARGET, help="a URI or path; a directory for several")


def _landings(work: FileWork, uris: Sequence[str], to: str) -> list[Item]:
    """Return the pairs of sources and targets; the targets are in `to`, if that is a directory.

    What is in a source whose name ends in `.` or `..` arrives in `to` itself, as with `cp`. A
    source that is named twice arrives once. Where two sources have one name, of which only one
    would remain, or there are several and no directory, nothing arrives.
    """
    sources = work.expand_all(uris)
    items: dict[str, Item] = {}
    with work.about(to):
        target = work.location(to)
        is_directory = target.is_directory()
        if max(len(uris), len(sources)) > 1 and not is_directory:
            raise FailedPreconditionError("is not a directory, and there are several sources")
        for source in sources:
            is_named = is_directory and source.name not in ("", ".", "..")
            landing = target.child(source.name) if is_named else target
            first = items.setdefault(landing.uri, Item(source, landing)).source
            if not is_one_name(first, source):
                items.clear()
                raise FailedPreconditionError(
                    f"{first.uri} and {source.uri} would both become {landing.uri}, so nothing was"
                    " done; give them different targets"
                )
    return list(items.values())


# -- cp ---------------------------------------------------------------------------------------


@command(ManyFilesCommand, dry_run="copy nothing, and report what would be copied")
@uris_argument("source")
@_target_argument
@click.option("-r", "recursive", is_flag=True, help="copy directories")
def cp(
    call: Invocation, *, uris: tuple[str, ...], target: str, recursive: bool, rules: Rules
) -> Exit:
    """Copy files, and with -r directories, between any two schemes and local paths.

    `-` as a source is standard input, and as the target standard output.
    """
    is_in, is_out = STANDARD in uris, target == STANDARD
    if is_in or is_out:
        wrong = ""
        if is_in and (is_out or len(uris) > 1):
            wrong = "standard input (-) goes to one target, and is the only source"
        elif recursive or rules.dry_run or rules.filters:
            wrong = "- is one stream of bytes: -r, -n and filters cannot go with it"
        elif is_out and call.json:
            wrong = "the bytes go to standard output; --json cannot go with it"
        if wrong:
            report_error(wrong)
            return Exit.USAGE
        rules = rules._replace(jobs=1)  # one stream of bytes has one order
    with call.session() as service:
        work = _Changes(call, service, [*uris, target], rules, "copy")
        if is_out:
            copy_out(work, uris)
        elif is_in:
            copy_in(work, target)
        else:
            Copying(
                work,
                partial(work.note, "copy"),
                recursive=recursive,
                take=rules.take,
                dry_run=rules.dry_run,
            ).run(_landings(work, uris, target))
    return work.end()


class _Uri(NamedTuple):
    """A URI before its filesystem is known."""

    uri: str


def copy_out(work: FileWork, uris: Sequence[str]) -> None:
    """Write files to standard output, one after the other."""

    def step(one: _Uri) -> None:
        for location in work.expand(one.uri):
            with work.copying(location) as watch:
                read_all(location, sys.stdout.buffer.write, watch)
                sys.stdout.buffer.flush()

    sys.stdout.flush()
    work.totals.find(len(uris))
    work.run(step, map(_Uri, uris))


def copy_in(work: FileWork, target: str) -> None:
    """Write standard input to a file; what is not read to its end is not stored."""
    source = cast("BufferedReader", sys.stdin.buffer)
    before: os.stat_result | None = None
    begun = 0
    with suppress(OSError):  # it may be no file of the system
        before = os.fstat(source.fileno())
        begun = source.tell() if stat.S_ISREG(before.st_mode) else 0

    def step(one: _Uri) -> None:
        filesystem, uri = location = work.location(one.uri)
        with work.copying(location) as watch:

            def write(writer: WritableFile) -> None:
                done = begun
                while block := source.read1(COPY_BLOCK):
                    writer.append(block)
                    done += len(block)
                    watch.advance(len(block))
                if before is not None:
                    require_all_read(source, before, done)

            write_whole(filesystem, uri, write, watch)

    work.totals.find(1)
    work.run(step, [_Uri(target)])


# -- mv and rm --------------------------------------------------------------------------------


@command(ManyFilesCommand, dry_run="move nothing, and report what would be moved")
@uris_argument("source")
@_target_argument
def mv(call: Invocation, *, uris: tuple[str, ...], target: str, rules: Rules) -> Exit:
    """Move or rename files and directories, also between schemes and local paths.

    With --include or --exclude only files that they include are moved, and directories stay.
    """
    with call.session() as service:
        work = _Changes(call, service, [*uris, target], rules, "move")
        items, done = _landings(work, uris, target), partial(work.note, "move")
        move_all(work, items, done, take=rules.take, dry_run=rules.dry_run)
    return work.end()


@command(ManyFilesCommand, dry_run="remove nothing, and report which files would be removed")
@uris_argument("what to remove")
@click.option("-r", "recursive", is_flag=True, help="remove directories")
def rm(call: Invocation, *, uris: tuple[str, ...], recursive: bool, rules: Rules) -> Exit:
    """Remove files, and with -r directories and all that is in them.

    With --include or --exclude only files that they include are removed, and no directories.
    """

    def note(item: Item) -> None:
        if rules.dry_run or not item.path:
            work.note("remove", item)

    with call.session() as service:
        work = _Changes(call, service, uris, rules, "remove")
        removal = Removal(work, note, recursive=recursive, take=rules.take, dry_run=rules.dry_run)
        removal.run(map(Item.at, work.expand_all(uris)))
    return work.end()


# -- sync -------------------------------------------------------------------------------------


@command(ManyFilesCommand, dry_run="change nothing, and report what would be copied and deleted")
@argument("source", type=SOURCE, help="a directory: a URI or a local path")
@argument("target", type=TARGET, help="what it shall be like; may be missing")
@click.option(
    "--delete",
    is_flag=True,
    help="also delete what only the target has; what filters leave out stays",
)
@click.option("--size-only", is_flag=True, help="treat files of one size as equal")  # fmt: skip
def sync(
    call: Invocation, *, source: str, target: str, delete: bool, size_only: bool, rules: Rules
) -> Exit:
    """Copy what a directory has and another one lacks, or has in another size or older.

    Times are those that the two stores report; a file that both have in one size is copied if the
    source is newer by a second or more, or never with --size-only. Nothing is deleted without
    --delete, nor where anything failed, or the source is missing or empty.
    """

    def is_equal(old: FileStatistics, new: FileStatistics) -> bool:
        if new.is_directory or new.length != old.length:
            return False
        is_timed = new.mtime_nsec > 0 and not size_only
        return not is_timed or old.mtime_nsec // _SECOND_NS <= new.mtime_nsec // _SECOND_NS

    with call.session() as service:
        work = _Changes(call, service, [source, target], rules, "copy", "delete")
        with work.about(source):
            root = Item(work.location(source), work.location(target))
            if delete and overlap(root.target, root.source) is Overlap.HOLDS:
                raise FailedPreconditionError(
                    f"{target} holds it, and --delete would delete it; choose another target"
                )
            copying = Copying(
                work,
                partial(work.note, "copy"),
                take=rules.take,
                dry_run=rules.dry_run,
                is_equal=is_equal,
                is_mirror=delete,
            )
            copying.run([root])
            if delete:
                _delete_surplus(work, copying, root)
    return work.end()


def _delete_surplus(work: _Changes, copying: Copying, root: Item) -> None:
    """Delete what only the target has, if nothing failed and the source has anything."""

    def report(location: Location, why: str) -> None:
        work.fail(location.uri, FailedPreconditionError(why, path=location.uri))

    for link in copying.behind_links:
        report(link, "is a link to a directory; nothing in it was deleted")
    if copying.surplus and work.failures:
        report(root.target, "nothing was deleted, since not all went well")
    elif copying.surplus and copying.is_source_empty:
        report(root.source, "is empty, so nothing was deleted; fs rm -r empties the target")
    elif copying.surplus:
        copied, done = work.totals.files, partial(work.note, "delete")
        Removal(work, done, take=copying.take, dry_run=copying.dry_run).run(copying.surplus)
        work.totals.files = work.totals.known = copied
    for uri, left_out in copying.staying:
        for reason in left_out:
            work.fail(uri, FailedPreconditionError(reason, path=uri))


# -- mkdir ------------------------------------------------------------------------------------


@command()
@uris_argument("directory to make")
@click.option("-p", "parents", is_flag=True, help="with those above it; it may exist already")
def mkdir(call: Invocation, *, uris: tuple[str, ...], parents: bool) -> Exit:
    """Create one or more directories."""
    made = []
    with call.session() as service:
        work = FileWork(service, uris)
        for uri in uris:
            with work.about(uri):
                filesystem = work.location(uri).filesystem
                (filesystem.recursively_create_dir if parents else filesystem.create_dir)(uri)
                made.append(uri)
    if call.json:
        call.json_object(made=made)
    return work.exit_code
