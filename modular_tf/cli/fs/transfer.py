"""The verbs that change files: `cp`, `mv`, `rm`, `sync` and `mkdir`."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error
from modular_tf.cli.fs.options import add_transfer_options, add_uris, selection, verb
from modular_tf.cli.fs.work import Work
from modular_tf.cli.session import session
from modular_tf.errors import FailedPreconditionError
from modular_tf.filesystem.copying import COPY_BLOCK, read_all, require_all_read, write_whole
from modular_tf.filesystem.location import Location, Overlap, is_one_name, overlap
from modular_tf.filesystem.trees import Copying, Item, Removal, move_all

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from io import BufferedReader

    from modular_tf.cli.printer import Printer
    from modular_tf.filesystem.files import WritableFile
    from modular_tf.filesystem.statistics import FileStatistics

STANDARD = "-"
"""What stands for standard input or output on the command line."""

_SECOND_NS = 10**9  # the resolution of the times that stores keep


class _Done:
    """What a verb has done or would do: lines of a rehearsal, or entries of the JSON object."""

    def __init__(self, options: Namespace, printer: Printer) -> None:
        self._is_rehearsal = options.dry_run
        self._printer = printer
        self.lists: dict[str, list[Any]] = {}

    def pair(self, word: str, key: str, item: Item) -> None:
        """Note a copy or a move. [any thread]"""
        if self._printer.json:
            self.lists[key].append({"from": item.source.uri, "to": item.target.uri})
        elif self._is_rehearsal:
            self._printer.row((word, item.source.uri, item.target.uri))

    def one(self, word: str, key: str, item: Item) -> None:
        """Note a removal. [any thread]"""
        if self._printer.json:
            self.lists[key].append(item.uri)
        elif self._is_rehearsal:
            self._printer.row((word, item.uri))

    def end(self, work: Work, participle: str) -> Exit:
        """Write the summary or the JSON object; return the exit status."""
        work.summarize(f"to be {participle}" if self._is_rehearsal else participle)
        if self._printer.json:
            rehearsal = {"dry_run": True} if self._is_rehearsal else {}
            self._printer.json_object(**self.lists, totals=work.totals_as_object(), **rehearsal)
        return work.exit_code


def _add_sources_and_target(parser: ArgumentParser) -> None:
    add_uris(parser, "source")
    parser.add_argument("target", metavar="TARGET", help="a URI or path; a directory for several")


def _landings(work: Work, options: Namespace) -> list[Item]:
    """Return what arrives where: inside the target, if that is a directory.

    What is in a source whose name ends in `.` or `..` arrives in the target itself, as with `cp`. A
    source that is named twice arrives once. Where two sources have one name, of which only one
    would remain, or there are several and no directory, nothing arrives.
    """
    sources = work.expand_all(options.uris)
    items: dict[str, Item] = {}
    with work.about(options.target):
        target = work.location(options.target)
        is_directory = target.is_directory()
        if max(len(options.uris), len(sources)) > 1 and not is_directory:
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


def _cp_arguments(parser: ArgumentParser) -> None:
    _add_sources_and_target(parser)
    parser.add_argument("-r", dest="recursive", action="store_true", help="copy directories")
    add_transfer_options(parser, "copy nothing, and report what would be copied")


@verb(_cp_arguments)
def cp(options: Namespace, printer: Printer) -> Exit:
    """Copy files, and with -r directories, between any two schemes and local paths.

    `-` as a source is standard input, and as the target standard output.
    """
    is_in, is_out = STANDARD in options.uris, options.target == STANDARD
    if is_in or is_out:
        wrong = ""
        if is_in and (is_out or len(options.uris) > 1):
            wrong = "standard input (-) goes to one target, and is the only source"
        elif options.recursive or options.dry_run or options.filters:
            wrong = "- is one stream of bytes: -r, -n and filters cannot go with it"
        elif is_out and printer.json:
            wrong = "the bytes go to standard output; --json cannot go with it"
        if wrong:
            report_error(wrong)
            return Exit.USAGE
        options.jobs = 1  # one stream of bytes has one order
    done = _Done(options, printer)
    done.lists["copied"] = []
    with session(options) as service:
        work = Work(options, service, [*options.uris, options.target])
        if is_out:
            copy_out(work, options.uris)
        elif is_in:
            copy_in(work, options.target)
        else:
            Copying(
                work,
                lambda item: done.pair("copy", "copied", item),
                recursive=options.recursive,
                take=selection(options.filters),
                dry_run=options.dry_run,
            ).run(_landings(work, options))
    return done.end(work, "copied")


class _Uri(NamedTuple):
    """A URI that is not yet looked up."""

    uri: str


def copy_out(work: Work, uris: Sequence[str]) -> None:
    """Write files to standard output, one after the other."""

    def step(one: _Uri) -> None:
        for location in work.expand(one.uri):
            with work.copying(location) as watch:
                read_all(location, sys.stdout.buffer.write, watch)
                sys.stdout.buffer.flush()

    sys.stdout.flush()
    work.totals.find(len(uris))
    work.run(step, map(_Uri, uris))


def copy_in(work: Work, target: str) -> None:
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


def _mv_arguments(parser: ArgumentParser) -> None:
    _add_sources_and_target(parser)
    add_transfer_options(parser, "move nothing, and report what would be moved")


@verb(_mv_arguments)
def mv(options: Namespace, printer: Printer) -> Exit:
    """Move or rename files and directories, also between schemes and local paths.

    With --include or --exclude only files that are taken are moved, and directories stay.
    """
    done = _Done(options, printer)
    done.lists["moved"] = []
    with session(options) as service:
        work = Work(options, service, [*options.uris, options.target])
        move_all(
            work,
            _landings(work, options),
            lambda item: done.pair("move", "moved", item),
            take=selection(options.filters),
            dry_run=options.dry_run,
        )
    return done.end(work, "moved")


def _rm_arguments(parser: ArgumentParser) -> None:
    add_uris(parser, "what to remove")
    parser.add_argument("-r", dest="recursive", action="store_true", help="remove directories")
    add_transfer_options(parser, "remove nothing, and report which files would be removed")


@verb(_rm_arguments)
def rm(options: Namespace, printer: Printer) -> Exit:
    """Remove files, and with -r directories and all that is in them.

    With --include or --exclude only files that are taken are removed, and no directories.
    """
    done = _Done(options, printer)
    done.lists["removed"] = []

    def note(item: Item) -> None:
        if options.dry_run or not item.path:
            done.one("remove", "removed", item)

    with session(options) as service:
        work = Work(options, service, options.uris)
        Removal(
            work,
            note,
            recursive=options.recursive,
            take=selection(options.filters),
            dry_run=options.dry_run,
        ).run(map(Item.at, work.expand_all(options.uris)))
    return done.end(work, "removed")


# -- sync -------------------------------------------------------------------------------------


def _sync_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a directory: a URI or a local path")
    parser.add_argument("target", metavar="TARGET", help="what it shall be like; may be missing")
    parser.add_argument(
        "--delete", action="store_true",
        help="also delete what only the target has; what filters leave out stays",
    )  # fmt: skip
    parser.add_argument("--size-only", action="store_true", help="take files of one size for equal")
    add_transfer_options(parser, "change nothing, and report what would be copied and deleted")


@verb(_sync_arguments)
def sync(options: Namespace, printer: Printer) -> Exit:
    """Copy what a directory has and another one lacks, or has in another size or older.

    Times are those that the two stores report; a file that both have in one size is copied if the
    source is newer by a second or more, or never with --size-only. Nothing is deleted without
    --delete, nor where anything failed, or the source is missing or empty.
    """
    done = _Done(options, printer)
    done.lists = {"copied": [], "deleted": []}

    def is_equal(source: FileStatistics, target: FileStatistics) -> bool:
        if target.is_directory or target.length != source.length:
            return False
        is_timed = target.mtime_nsec > 0 and source.mtime_nsec > 0 and not options.size_only
        return not is_timed or source.mtime_nsec // _SECOND_NS <= target.mtime_nsec // _SECOND_NS

    with session(options) as service:
        work = Work(options, service, [options.source, options.target])
        with work.about(options.source):
            source, target = work.location(options.source), work.location(options.target)
            if options.delete and overlap(target, source) is Overlap.HOLDS:
                raise FailedPreconditionError(
                    f"{target.uri} holds it, and --delete would delete it; choose another target"
                )
            copying = Copying(
                work,
                lambda item: done.pair("copy", "copied", item),
                take=selection(options.filters),
                dry_run=options.dry_run,
                is_equal=is_equal,
                is_mirror=options.delete,
            )
            copying.run([Item(source, target)])
            if options.delete:
                _delete_surplus(work, copying, Item(source, target), done)
    return done.end(work, "copied")


def _delete_surplus(work: Work, copying: Copying, root: Item, done: _Done) -> None:
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
        copied = work.totals.files
        Removal(
            work,
            lambda item: done.one("delete", "deleted", item),
            take=copying.take,
            dry_run=copying.dry_run,
        ).run(copying.surplus)
        work.totals.files = work.totals.known = copied
    for uri, left_out in copying.staying:
        for reason in left_out:
            work.fail(uri, FailedPreconditionError(reason, path=uri))


# -- mkdir ------------------------------------------------------------------------------------


def _mkdir_arguments(parser: ArgumentParser) -> None:
    add_uris(parser, "directory to make")
    parser.add_argument(
        "-p", dest="parents", action="store_true", help="with those above it; it may exist already"
    )


@verb(_mkdir_arguments)
def mkdir(options: Namespace, printer: Printer) -> Exit:
    """Create one or more directories."""
    made = []
    with session(options) as service:
        work = Work(options, service, options.uris)
        for uri in options.uris:
            with work.about(uri):
                filesystem = work.location(uri).filesystem
                parents = options.parents
                (filesystem.recursively_create_dir if parents else filesystem.create_dir)(uri)
                made.append(uri)
    if printer.json:
        printer.json_object(made=made)
    return work.exit_code
