"""Arguments of the file verbs, and the values that they stand for."""

from __future__ import annotations

import inspect
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from modular_tf.cli.frame import Command, argument
from modular_tf.cli.words import URI

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_POWERS = " KMGT"
_RANGE = re.compile(r"(\d*)-(\d*)", re.ASCII)
_MOST_JOBS = 256
_FILTERS = (
    "All files are taken at first, and the last of --include and --exclude that matches a file"
    " decides. GLOB is compared with the path below the source, and * matches / too:"
    " --exclude '*' --include '*.csv' takes CSV files only."
)


def uris_argument(what: str) -> Callable[[Any], Any]:
    """Let the verb take one or more URIs or local paths."""
    meaning = f"{what}: a URI or a local path"
    return argument("uris", type=URI, nargs=-1, required=True, help=meaning)


def human_readable_option(condition: str = "") -> Callable[[Any], Any]:
    """Let the verb show sizes with units."""
    meaning = f"{condition}sizes as 1.5 KiB or 23 MiB"
    return click.option("-h", "--human-readable", is_flag=True, help=meaning)


class Rules(NamedTuple):
    """The rules of work on many files.

    With `dry_run` nothing is changed, and what would be is reported. `jobs` is None for what the
    configuration says. With `quiet` no progress and no summary is shown. `filters` are pairs:
    whether files that match are taken, and the pattern.
    """

    dry_run: bool
    jobs: int | None
    quiet: bool
    filters: tuple[tuple[bool, str], ...]

    @property
    def take(self) -> Callable[[str], bool] | None:
        """Whether a file is taken, by its path below the source; None without filters."""

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
                ["--include"], metavar="GLOB", multiple=True, help="take files that match"
            ),
            click.Option(
                ["--exclude"], metavar="GLOB", multiple=True, help="leave out files that match"
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


count = click.IntRange(min=0)


def byte_count(text: str) -> int:
    """Return a number of bytes from text such as 100, 64K or 1.5GiB; units are powers of 1024."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size such as 100, 64K or 1.5GiB")
    number, unit = match.groups()
    power = _POWERS.index(unit.upper() or " ")
    return int(number) * 1024**power if number.isdecimal() else int(float(number) * 1024**power)


def byte_range(text: str) -> tuple[int, int | None]:
    """Return the range of a text such as `0-99`, `100-` or `-50`, whose ends are both within it.

    It begins at the position of the first byte, a negative one counted from the end of the file,
    and ends at the position past the last byte, None for the end of the file.
    """
    match = _RANGE.fullmatch(text)
    first, last = match.groups() if match else ("", "")
    if first and last and int(first) <= int(last):
        return int(first), int(last) + 1
    if first and not last:
        return int(first), None
    if last and not first and int(last):
        return -int(last), None
    raise click.BadParameter(
        f"{text!r} is not a range: 0-99 is the first 100 bytes, 100- what follows them, -50 the"
        " last 50"
    )
