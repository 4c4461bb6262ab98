"""Defects of plugins in the wild, and what the host does about each.

Rows of data (`known_defects.toml`) keyed by the identity of a plugin. The code that reads them,
and the code that acts on the answers, names no vendor.
"""

from __future__ import annotations

import fnmatch
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.loading.defect_answers import NO_ANSWERS, Answers, typed_answer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NO_ANSWERS", "Answers", "KnownDefect", "answers_for", "defects_of", "known_defects"]


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """One row.

    Attributes:
        id: Its name.
        library: Glob over the file name of the plugin's library.
        schemes: Schemes that have the defect.
        defect: What happens without the host's answer.
        always: What the host does for every plugin that meets it, "" where it is `answer`.
        answer: Fields of `Answers` that differ from its defaults.
        sheet: Its number in the measured list of defects, None where it was found later.
        test: Node id of the test that shows it answered.
    """

    id: str
    library: str
    schemes: tuple[str, ...]
    defect: str
    always: str
    answer: Mapping[str, Any]
    sheet: int | None
    test: str


@cache
def known_defects() -> tuple[KnownDefect, ...]:
    """Return all rows."""
    text = Path(__file__).with_name("known_defects.toml").read_text("utf-8")
    return tuple(
        KnownDefect(
            id=row["id"],
            library=row["library"],
            schemes=tuple(row["schemes"]),
            defect=row["defect"],
            always=row.get("always", ""),
            answer=typed_answer(row.get("answer", {})),
            sheet=row.get("sheet"),
            test=row["test"],
        )
        for row in tomllib.loads(text)["defect"]
    )


def defects_of(library: str, scheme: str | None = None) -> list[KnownDefect]:
    """Return the rows of a library file, of one scheme or of all."""
    name = Path(library).name
    return [
        row
        for row in known_defects()
        if fnmatch.fnmatchcase(name, row.library) and (scheme is None or scheme in row.schemes)
    ]


def answers_for(library: str, scheme: str) -> Answers:
    """Return what the host does for a scheme of a library; collections of several rows add up.

    Raises:
        ValueError: Two rows give one field two values.
    """
    merged: dict[str, Any] = {}
    for row in defects_of(library, scheme):
        for name, value in row.answer.items():
            merged[name] = _added(name, merged[name], value) if name in merged else value
    return Answers(**merged) if merged else NO_ANSWERS


def _added(name: str, before: Any, value: Any) -> Any:
    if isinstance(value, (frozenset, dict)):
        return before | value
    if before != value:
        raise ValueError(f"known_defects.toml: {name} is both {before!r} and {value!r}")
    return value
