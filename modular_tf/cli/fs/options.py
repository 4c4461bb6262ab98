"""Arguments of the file verbs, and the values that they stand for."""

from __future__ import annotations

import argparse
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence

    from modular_tf.cli.exit_codes import Exit
    from modular_tf.cli.printer import Printer

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_POWERS = " KMGT"
_RANGE = re.compile(r"(\d*)-(\d*)", re.ASCII)
_MOST_JOBS = 256

FILTERS_HELP = (
    "All files are taken at first, and the last of --include and --exclude that matches a file"
    " decides. GLOB is compared with the path below the source, and * matches / too:"
    " --exclude '*' --include '*.csv' takes CSV files only."
)
"""What the help of a verb says about its filters."""


class FileVerb:
    """A verb: its help is the docstring of the function that runs it.

    Args:
        add_arguments: Adds the options of the verb.
        execute: Runs it and returns its exit status.
    """

    def __init__(
        self,
        add_arguments: Callable[[ArgumentParser], None],
        execute: Callable[[Namespace, Printer], Exit],
    ) -> None:
        self.__doc__ = execute.__doc__
        self.__name__ = f"{execute.__module__}:{execute.__name__}"
        self.add_arguments = add_arguments
        self.execute = execute


def verb(
    add_arguments: Callable[[ArgumentParser], None],
) -> Callable[[Callable[[Namespace, Printer], Exit]], FileVerb]:
    """Make a verb of a function, given the function that adds its options."""
    return lambda execute: FileVerb(add_arguments, execute)


def add_uris(parser: ArgumentParser, what: str) -> None:
    """Let the verb take one or more URIs or local paths."""
    parser.add_argument("uris", metavar="URI", nargs="+", help=f"{what}: a URI or a local path")


def add_human_readable(parser: ArgumentParser, condition: str = "") -> None:
    """Let the verb show sizes with units."""
    parser.add_argument(
        "-h", "--human-readable", action="store_true",
        help=f"{condition}sizes as 1.5 KiB or 23 MiB",
    )  # fmt: skip


def add_transfer_options(parser: ArgumentParser, dry_run: str) -> None:
    """Let the verb rehearse, take a number of threads, be quiet, and have filters."""
    parser.add_argument("-n", "--dry-run", action="store_true", help=dry_run)
    parser.add_argument(
        "-j", dest="jobs", metavar="N", type=_jobs, default=None,
        help="work on N files at once; by default as many as `calls_at_once` of the configuration"
        " says (16), and 1 where all is on this machine",
    )  # fmt: skip
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="show no progress and no summary"
    )
    parser.set_defaults(filters=())
    group = parser.add_argument_group("filters", FILTERS_HELP)
    for option, what in (("--include", "take"), ("--exclude", "leave out")):
        group.add_argument(
            option, metavar="GLOB", action=_AddFilter, dest="filters",
            help=f"{what} files that match",
        )  # fmt: skip


class _AddFilter(argparse.Action):
    """Keeps `--include` and `--exclude` in one list, since their order matters."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  (argparse's signature)
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Add a filter."""
        filters = getattr(namespace, "filters", ())
        namespace.filters = (*filters, (option_string == "--include", values))


def selection(filters: Sequence[tuple[bool, str]]) -> Callable[[str], bool] | None:
    """Return whether a file is taken, by its path below the source; None without filters.

    Args:
        filters: Pairs of whether files that match are taken, and the pattern.
    """

    def takes(path: str) -> bool:
        for is_taken, pattern in reversed(filters):
            if fnmatchcase(path, pattern):
                return is_taken
        return True

    return takes if filters else None


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_JOBS}")
    return int(text)


def count(text: str) -> int:
    """Return a number that is not negative.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 10")
    return int(text)


def byte_count(text: str) -> int:
    """Return a number of bytes from text such as 100, 64K or 1.5GiB; units are powers of 1024.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 100, 64K or 1.5GiB")
    number, unit = match.groups()
    power = _POWERS.index(unit.upper() or " ")
    return int(number) * 1024**power if number.isdecimal() else int(float(number) * 1024**power)


def byte_range(text: str) -> tuple[int, int | None]:
    """Return the range of a text such as `0-99`, `100-` or `-50`, whose ends are both within it.

    Returns:
        The position of the first byte, a negative one counted from the end of the file, and the
        position past the last byte, None for the end of the file.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    match = _RANGE.fullmatch(text)
    first, last = match.groups() if match else ("", "")
    if first and last and int(first) <= int(last):
        return int(first), int(last) + 1
    if first and not last:
        return int(first), None
    if last and not first and int(last):
        return -int(last), None
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a range: 0-99 is the first 100 bytes, 100- what follows them, -50 the"
        " last 50"
    )
