"""Work on many files at once, with progress, a summary, and an end within a second of Ctrl-C."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from modular_tf.cli.failures import Failures, report_error
from modular_tf.cli.fs.feed import Feed
from modular_tf.cli.fs.place import Place
from modular_tf.cli.fs.totals import Totals, Unfinished
from modular_tf.cli.interrupts import leave, terminate_as_interrupt
from modular_tf.cli.text import counted
from modular_tf.cli.transfer_progress import TransferProgress
from modular_tf.concurrency.crew import Crew
from modular_tf.errors import ModularTFError
from modular_tf.filesystem.copying import CopyWatch
from modular_tf.filesystem.scheme import is_of_this_machine

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.service.service import PluginService

_Item = TypeVar("_Item")


def add_transfer_options(parser: ArgumentParser) -> None:
    """Let the verb take how many files are worked on at once, and whether it tells of it."""
    parser.add_argument(
        "-j", dest="jobs", metavar="N", type=_jobs, default=None,
        help="work on N files at once; by default as many as `calls_at_once` of the configuration"
        " says (16), and 1 where all is on this machine",
    )  # fmt: skip
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="show no progress and no summary"
    )


def _jobs(text: str) -> int:
    from argparse import ArgumentTypeError  # noqa: PLC0415  (argparse calls this)

    most = 256
    if not text.isdecimal() or not 0 < int(text) <= most:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to {most}")
    return int(text)


class Transfers(Generic[_Item]):
    """The work of one verb. [main thread; what a step uses: any thread]

    Args:
        options: Of the verb.
        service: Says how many calls may be made at once, where the options do not.
        uris: What the verb works on.
        failures: Takes what fails; the rest goes on.

    Attributes:
        totals: What it has come to.
        failures: As above.
    """

    def __init__(
        self, options: Namespace, service: PluginService, uris: Iterable[str], failures: Failures
    ) -> None:
        from modular_tf.filesystem.scheme import scheme_of  # noqa: PLC0415  (with the service)

        at_once = getattr(options, "jobs", None) or service.calls_at_once(*map(scheme_of, uris))
        self.totals = Totals()
        self.failures = failures
        self._quiet = options.quiet
        self._progress = TransferProgress(self.totals, is_wanted=not options.quiet)
        self._crew = Crew(at_once, while_waiting=self._progress.show)
        self._feed: Feed[_Item] | None = None

    def check(self) -> None:
        """Raise if the work was given up; asked between two steps of a long one. [any thread]"""
        self._crew.check()

    def add(self, items: Iterable[_Item]) -> None:
        """Add items, by the step of another one. [any thread]"""
        if self._feed is not None:
            self._feed.add(items)

    def run(
        self,
        step: Callable[[_Item], object],
        items: Iterable[_Item],
        subject: Callable[[_Item], str],
    ) -> None:
        """Take a step for each item, and for each that a step adds.

        Args:
            step: Called by several threads at once; what it raises is a failure.
            items: The first items.
            subject: Returns what a failure is about.

        Raises:
            KeyboardInterrupt: The user interrupted it, and nothing is under way any more.
        """
        self._feed = feed = Feed(items, self.check)

        def work(item: _Item) -> None:
            try:
                step(item)
            finally:
                feed.end_one()

        with terminate_as_interrupt():
            try:
                with closing(self._crew.run(work, feed, in_order=False)) as outcomes:
                    for outcome in outcomes:
                        if outcome.error is not None:
                            self._progress.clear()
                            self.fail(subject(outcome.item), outcome.get)
            except KeyboardInterrupt:
                self._give_up()
                raise
            finally:
                self._progress.clear()

    def fail(self, subject: str, call: Callable[[], object]) -> None:
        """Make a call, and count what it raises as a failure."""
        before = self.failures.count
        with self.failures.about(subject):
            call()
        self.totals.failed += self.failures.count - before

    def tell_left_out(self, uri: str, left_out: Iterable[str]) -> None:
        """Count as failures what of a directory no path leads to. [any thread]"""
        for what in left_out:
            self.failures.add(what, uri)
            self.totals.count_failure()

    def tell(self, done: str) -> None:
        """Write the summary: to a person always, otherwise of more than one file."""
        self._progress.clear()
        is_wanted = sys.stderr.isatty() or max(self.totals.files, self.totals.known) > 1
        if is_wanted and not self._quiet:
            report_error(self.totals.summary(done))

    def _give_up(self) -> None:
        """Report what becomes of the files that are under way, and end the process if any is.

        The calls of plugins had half a second to end (`Crew`). A copy may still come to its end
        meanwhile; then its target, if it is deleted here, was not counted as done, and its source
        stays (`FileWatch.whole`).
        """
        self._progress.clear()
        files, storing, unfinished = self.totals.under_way()
        torn = []
        for place, is_new in unfinished.values():
            if is_new and is_of_this_machine(place.filesystem.scheme):
                with suppress(ModularTFError):
                    place.filesystem.delete_file(place.uri)
            else:  # it may be a device, or nobody knows how long that would take
                torn.append(place.uri)
        report_error(f"interrupted; {counted(files, 'file')} done")
        for uri in dict.fromkeys([*storing, *torn]):
            left = "may be torn" if uri in torn else "is as it was, or whole if its store had all"
            report_error(f"the copy was given up; the target {left}", uri)
        if storing or self._crew.is_working:
            leave()


class FileWatch(CopyWatch):
    """Counts what is copied of one file, and gives it up with the rest."""

    def __init__(self, transfers: Transfers[_Item], target: Place) -> None:
        self._transfers = transfers
        self._totals = transfers.totals
        self._target = target
        self._bytes = 0
        self._is_sized = False

    def begun(self, length: int | None) -> None:
        """Count the length, which a listing may have told before the file was opened."""
        if length is not None and not self._is_sized:
            self._is_sized = True
            self._totals.begin(length)

    def advance(self, n_bytes: int) -> None:
        """Count bytes; raise if the work was given up."""
        self._bytes += n_bytes
        self._totals.add_bytes(n_bytes)
        self._transfers.check()

    def take_back(self) -> None:
        """Take away the bytes of a file that is not done."""
        self._totals.add_bytes(-self._bytes)

    def storing(self) -> None:
        """Note since when the target is being stored; raise if the work was given up."""
        self._transfers.check()
        self._totals.store(self._target.uri)

    def unfinished(self, uri: str | None, *, is_new: bool = True) -> None:
        """Note what is left of the copy if the process ends."""
        left = None if uri is None else Unfinished(Place(self._target.filesystem, uri), is_new)
        self._totals.note_unfinished(self._target.uri, left)

    def whole(self) -> None:
        """Raise if the work was given up: what was not whole then may be deleted."""
        self._transfers.check()


@contextmanager
def watched(transfers: Transfers[_Item], target: Place) -> Iterator[FileWatch]:
    """Yield what counts the copy of a file, which is done if the body raises nothing."""
    watch = FileWatch(transfers, target)
    try:
        yield watch
        transfers.totals.end(target.uri)
    except BaseException:
        watch.take_back()
        raise
    finally:
        transfers.totals.leave(target.uri)
