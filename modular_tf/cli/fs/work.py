"""What the file verbs share: their arguments, and their work on many files.

Work has locations, failures and progress, and ends by Ctrl-C.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from modular_tf.cli.frame import Command, argument
from modular_tf.cli.output import EXPECTED, counted, message_of, report_error, size
from modular_tf.cli.process import (
    Exit,
    OutputError,
    ReaderGoneError,
    expect_exit,
    leave,
    terminate_as_interrupt,
)
from modular_tf.cli.progress import TransferProgress
from modular_tf.cli.values import URI
from modular_tf.errors import ModularTFError, NotFoundError, UnimplementedError
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.location import IncompleteListingWarning, Location
from modular_tf.filesystem.uri import is_of_this_machine, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from modular_tf.service.service import PluginService

_MOST_JOBS = 256
_FILTERS = (
    "All files are included at first, and the last of --include and --exclude that matches a file"
    " decides. GLOB is compared with the path below the source, and * matches / too:"
    " --exclude '*' --include '*.csv' includes CSV files only."
)


# -- arguments --------------------------------------------------------------------------------


def uris_argument(what: str) -> Callable[[Any], Any]:
    """Give the verb one or more URIs or local paths."""
    meaning = f"{what}: a URI or a local path"
    return argument("uris", type=URI, nargs=-1, required=True, help=meaning)


def human_readable_option(condition: str = "") -> Callable[[Any], Any]:
    """Give the verb the option to show sizes with units."""
    meaning = f"{condition}sizes as 1.5 KiB or 23 MiB"
    return click.option("-h", "--human-readable", is_flag=True, help=meaning)


class Rules(NamedTuple):
    """The rules of work on many files.

    With `dry_run` nothing is changed, and what would be is reported. `jobs` is None for what the
    configuration says. With `quiet` no progress and no summary is shown. `filters` are pairs:
    whether files that match are included, and the pattern.
    """

    dry_run: bool
    jobs: int | None
    quiet: bool
    filters: tuple[tuple[bool, str], ...]

    @property
    def take(self) -> Callable[[str], bool] | None:
        """Whether a file is included, by its path below the source; None without filters."""

        def takes(path: str) -> bool:
            matching = (taken for taken, glob in reversed(self.filters) if fnmatchcase(path, glob))
            return next(matching, True)

        return takes if self.filters else None


class ManyFilesCommand(Command):
    """A verb that works on many files: it has the options of `Rules`, and gets them as `rules`.

    Its arguments are the meaning of `--dry-run`, and those of `Command`.
    """

    def __init__(self, *, dry_run: str, help: str, **values: Any) -> None:  # noqa: A002
        super().__init__(help=f"{inspect.cleandoc(help)}\n\n{_FILTERS}", **values)
        self.params += [
            click.Option(["-n", "--dry-run"], is_flag=True, help=dry_run),
            click.Option(
                ["-j", "jobs"], metavar="N", type=click.IntRange(1, _MOST_JOBS),
                help="work on N files at once; by default as many as `calls_at_once` of the"
                " configuration says (16), and 1 where all is on this machine",
            ),
            click.Option(["-q", "--quiet"], is_flag=True, help="show no progress and no summary"),
            click.Option(
                ["--include"], metavar="GLOB", multiple=True, help="include files that match"
            ),
            click.Option(
                ["--exclude"], metavar="GLOB", multiple=True, help="exclude files that match"
            ),
        ]  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; filters stay in the order of the command line, which decides."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        rest = super().parse_args(ctx, args)
        given = {name: iter(ctx.params.pop(name)) for name in ("include", "exclude")}
        names = [str(param.name) for param in order if param.name in given]
        filters = tuple((name == "include", next(given[name])) for name in names)
        own = {name: ctx.params.pop(name) for name in ("dry_run", "jobs", "quiet")}
        ctx.params["rules"] = Rules(**own, filters=filters)
        return rest


# -- work -------------------------------------------------------------------------------------


class FileWork(Job):
    """A job whose failures are lines on standard error. [main thread; its steps: any thread]

    Without `jobs`, the configuration of the service decides how many files are worked on at once.
    With `quiet` no progress and no summary is shown.
    """

    def __init__(
        self,
        service: PluginService,
        uris: Iterable[str],
        *,
        jobs: int | None = None,
        quiet: bool = True,
    ) -> None:
        at_once = jobs or service.calls_at_once(*map(scheme_of, uris))
        self._service = service
        self._quiet = quiet
        super().__init__(at_once, while_waiting=lambda: self._progress.show())  # noqa: PLW0108  (made below)
        self._progress = TransferProgress(self.totals, is_wanted=not quiet)

    def fail(self, uri: str, error: BaseException) -> None:
        """Report a failure and count it; raise what ends the command."""
        if isinstance(error, (ReaderGoneError, OutputError)) or not isinstance(error, EXPECTED):
            raise error
        expect_exit(Exit.NO)
        super().fail(uri, error)
        self._progress.clear()
        report_error(message_of(error, uri), uri)

    @contextmanager
    def about(self, uri: str) -> Iterator[None]:
        """Report what the body of `with` raises as a failure about `uri`, and continue."""
        try:
            yield
        except EXPECTED as error:
            self.fail(uri, error)

    @property
    def exit_code(self) -> Exit:
        """`Exit.NO` if anything failed, else `Exit.DONE`."""
        return Exit.NO if self.failures else Exit.DONE

    # -- locations ----------------------------------------------------------------------------

    def location(self, uri: str) -> Location:
        """Return the location of a URI; `UnimplementedError` if no plugin serves its scheme."""
        try:
            return Location(self._service.filesystem_for(uri), uri)
        except UnimplementedError as error:
            hint = f"`modular-tf why {uri.partition('://')[0]}` shows more"
            raise UnimplementedError(f"{error.message}; {hint}", path=uri) from error

    def matching(self, pattern: str) -> list[str]:
        """Return the URIs that match a pattern; keys that match and have no path are failures.

        [main thread, while no other one lists]
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", IncompleteListingWarning)
            matches = self.location(pattern).filesystem.get_matching_paths(pattern)
        for warning in caught:
            if issubclass(warning.category, IncompleteListingWarning):
                self.fail(pattern, NotFoundError(str(warning.message), path=pattern))
            else:  # of a client
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
        return matches

    def expand(self, uri: str) -> list[Location]:
        """Return the locations that a URI names: itself, or what matches it as a pattern.

        A name that exists as it is written is never a pattern. Within one level of a path, `*` and
        `?` match any characters or one, `[...]` matches a set, and a backslash escapes.
        """
        from modular_tf.filesystem.glob import has_magic, require_plain_host  # noqa: PLC0415  (help needs no plugins)

        location = self.location(uri)
        if not has_magic(uri):
            return [location]
        require_plain_host(location.filesystem, uri)
        if location.filesystem.path_exists(uri):
            return [location]
        matches = self.matching(uri)
        if not matches:
            raise NotFoundError("nothing matches this pattern", path=uri)
        return [Location(location.filesystem, match) for match in matches]

    def expand_all(self, uris: Iterable[str]) -> list[Location]:
        """Return the locations of several URIs; one that names nothing is a failure."""
        found: list[Location] = []
        for uri in uris:
            with self.about(uri):
                found += self.expand(uri)
        return found

    # -- progress and the end -----------------------------------------------------------------

    def run(self, step: Callable[[Any], object], items: Iterable[Any]) -> None:
        """Take a step for each item, and for each that a step adds.

        An interrupt is raised when nothing is under way any more.
        """
        with terminate_as_interrupt():
            try:
                super().run(step, items)
            except KeyboardInterrupt:
                self._give_up()
                raise
            finally:
                self._progress.clear()

    def summarize(self, done: str) -> None:
        """Write the summary: to a person always, otherwise of more than one file.

        It is one line, such as "200 files copied, 12.5 MiB in 0.9 s, 13.9 MiB/s".
        """
        totals = self.totals
        if self._quiet or not (sys.stderr.isatty() or max(totals.files, totals.known) > 1):
            return
        amount = f", {size(totals.bytes)}" if totals.bytes else ""
        rate = f", {size(totals.bytes / totals.seconds)}/s" if totals.bytes else ""
        failed = f"; {totals.failed} failed" if totals.failed else ""
        text = f"{counted(totals.files, 'file')} {done}{amount} in {totals.seconds:.1f} s"
        report_error(f"{text}{rate}{failed}")

    def totals_as_object(self) -> dict[str, float]:
        """Return the totals as JSON output has them."""
        totals = self.totals
        seconds = round(totals.seconds, 3)
        counts = {"files": totals.files, "bytes": totals.bytes, "seconds": seconds}
        return {**counts, "failed": totals.failed}

    def _give_up(self) -> None:
        """Report what becomes of the files that are under way, and end the process if any is.

        The calls of plugins had half a second to end (`Crew`). A copy may still come to its end
        meanwhile; then its target, if it is deleted here, was not counted as done, and its source
        stays (`trees.move_file`).
        """
        self._progress.clear()
        files, storing, unfinished = self.totals.under_way()
        torn = []
        for (filesystem, uri), is_new in unfinished:
            is_here = is_of_this_machine(filesystem.scheme) or filesystem.disk_path(uri) is not None
            if is_new and is_here:
                with suppress(ModularTFError):
                    filesystem.delete_file(uri)
            else:  # it may be a device, or that may take any time
                torn.append(uri)
        report_error(f"interrupted; {counted(files, 'file')} done")
        for uri in dict.fromkeys([*storing, *torn]):
            left = "may be torn" if uri in torn else "is as it was, or whole if its store had all"
            report_error(f"the copy was given up; the target {left}", uri)
        if storing or self.is_working:
            leave()
