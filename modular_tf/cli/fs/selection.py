"""Which files of a tree a verb works on: `--include` and `--exclude`, in the order given."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FILTERS_HELP = (
    "All files are taken at first, and the last of --include and --exclude that matches a file"
    " decides. GLOB is compared with the path below the source, and * matches / too:"
    " --exclude '*' --include '*.csv' takes CSV files only."
)
"""What the help of a verb says about its filters."""


class Selection:
    """Filters of paths. [any thread]

    Args:
        filters: Pairs of whether files that match are taken, and the pattern.
    """

    def __init__(self, filters: Sequence[tuple[bool, str]] = ()) -> None:
        self._filters = tuple(filters)

    def __bool__(self) -> bool:
        """Whether there is any filter."""
        return bool(self._filters)

    def takes(self, path: str) -> bool:
        """Return whether a file is taken, by its path below the source, without a slash before."""
        for is_taken, pattern in reversed(self._filters):
            if fnmatchcase(path, pattern):
                return is_taken
        return True


EVERYTHING = Selection()
"""A selection without filters."""


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


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Let the verb take `--include` and `--exclude`."""
    parser.set_defaults(filters=())
    group = parser.add_argument_group("filters", FILTERS_HELP)
    for option, verb in (("--include", "take"), ("--exclude", "leave out")):
        group.add_argument(
            option, metavar="GLOB", action=_AddFilter, dest="filters",
            help=f"{verb} files that match",
        )  # fmt: skip
