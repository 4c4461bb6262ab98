"""The known defects of published plugins, and the workarounds for each.

The rows of `known_defects.toml` identify a plugin by its library and schemes. The code that reads
them and the code that applies the workarounds name no vendor.
"""

from __future__ import annotations

import fnmatch
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.loading.workarounds import NO_WORKAROUNDS, Workarounds, typed_workarounds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "NO_WORKAROUNDS",
    "KnownDefect",
    "Workarounds",
    "defects_of",
    "known_defects",
    "workarounds_for",
]


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """One row of `known_defects.toml`.

    Attributes:
        id: The row's name.
        library: A glob that matches the file name of the plugin's library.
        schemes: The schemes that have the defect.
        defect: What happens without a workaround.
        always: What the host does for every plugin that handles the defect, "" for nothing.
        workaround: The fields of `Workarounds` that differ from its defaults.
        sheet: The number in the measured list of defects, None if it was found later.
        test: Node id of the test that shows that the workaround is effective.
    """

    id: str
    library: str
    schemes: tuple[str, ...]
    defect: str
    always: str
    workaround: Mapping[str, Any]
    sheet: int | None
    test: str


@cache
def known_defects() -> tuple[KnownDefect, ...]:
    """Return all rows of the table."""
    text = Path(__file__).with_name("known_defects.toml").read_text("utf-8")
    return tuple(
        KnownDefect(
            id=row["id"],
            library=row["library"],
            schemes=tuple(row["schemes"]),
            defect=row["defect"],
            always=row.get("always", ""),
            workaround=typed_workarounds(row.get("workaround", {})),
            sheet=row.get("sheet"),
            test=row["test"],
        )
        for row in tomllib.loads(text)["defect"]
    )


def defects_of(library: str, scheme: str | None = None) -> list[KnownDefect]:
    """Return the rows that match a library file, for one scheme or for all."""
    name = Path(library).name
    return [
        row
        for row in known_defects()
        if fnmatch.fnmatchcase(name, row.library) and (scheme is None or scheme in row.schemes)
    ]


def workarounds_for(library: str, scheme: str) -> Workarounds:
    """Return the workarounds for a scheme of a library; collections of several rows are joined.

    Raises:
        ValueError: Two rows give one field two values.
    """
    merged: dict[str, Any] = {}
    for row in defects_of(library, scheme):
        for name, value in row.workaround.items():
            merged[name] = _added(name, merged[name], value) if name in merged else value
    return Workarounds(**merged) if merged else NO_WORKAROUNDS


def _added(name: str, before: Any, value: Any) -> Any:
    if isinstance(value, (frozenset, dict)):
        return before | value
    if before != value:
        raise ValueError(f"known_defects.toml: {name} is both {before!r} and {value!r}")
    return value
