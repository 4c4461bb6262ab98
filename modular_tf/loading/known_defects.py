"""Defects of plugins in the wild, and what the host does about each.

Rows of data (`known_defects.toml`) keyed by the identity of a plugin. The code that reads them,
and the code that acts on the answers, names no vendor.
"""

from __future__ import annotations

import fnmatch
import os
import sys
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from modular_tf.codes import Code

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping


@dataclass(frozen=True, slots=True)
class Answers:
    """What the host does differently for one scheme of one plugin.

    Attributes:
        withhold: Operations that are treated as if the plugin did not have them.
        environment_defaults: Variables to set where they are unset.
        environment_forced: Variables to set whatever they were.
        environment_removed: Variables to unset.
        max_read: Most bytes to ask for in one read.
        read_block: Bytes to fetch at once and serve smaller reads from.
        verify_ranges: Check that a read at an offset is one before relying on it.
        stat_cache_seconds: How long an answer about a path stays good.
        missing_codes: Codes that may stand for NOT_FOUND; then path_exists decides.
        require_existing: Operations before which path_exists is asked.
        exists_by_listing: A path exists only if path_exists says so and, as a directory, it is
            listed by its parent or has children.
        refuse_deleting_full_dirs: delete_dir asks first whether the directory is empty.
        append_nothing_before_close: An untouched writer appends no bytes before it closes.
        append_by_rewriting: Appending rewrites the file with its old content in front.
        count_position: tell is answered by counting.
        mtime_is_unknown: The time of change is reported as 0.
        endpoint_variable: Variable with the URL of the server, which is tried before waiting.
        reinitialise_after_fork: A forked child calls init anew.
    """

    withhold: frozenset[str] = frozenset()
    environment_defaults: Mapping[str, str] = field(default_factory=dict)
    environment_forced: Mapping[str, str] = field(default_factory=dict)
    environment_removed: frozenset[str] = frozenset()
    max_read: int | None = None
    read_block: int | None = None
    verify_ranges: bool = False
    stat_cache_seconds: float = 0.0
    missing_codes: frozenset[Code] = frozenset()
    require_existing: frozenset[str] = frozenset()
    exists_by_listing: bool = False
    refuse_deleting_full_dirs: bool = False
    append_nothing_before_close: bool = False
    append_by_rewriting: bool = False
    count_position: bool = False
    mtime_is_unknown: bool = False
    endpoint_variable: str | None = None
    reinitialise_after_fork: bool = False

    def __bool__(self) -> bool:
        return self != NO_ANSWERS

    def prepare_environment(self, environment: MutableMapping[str, str]) -> list[str]:
        """Change the variables that the plugin reads; must run before its first call.

        Returns:
            What was changed against the user's will, one sentence each.
        """
        changed = []
        for name, value in self.environment_defaults.items():
            environment.setdefault(name, value)
        for name, value in self.environment_forced.items():
            if environment.get(name, value) != value:
                changed.append(f"{name} was set to {value!r}, from {environment[name]!r}")
            environment[name] = value
        for name in sorted(self.environment_removed & environment.keys()):
            changed.append(f"{name} was unset, from {environment.pop(name)!r}")
        return changed


NO_ANSWERS = Answers()


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
    """

    id: str
    library: str
    schemes: tuple[str, ...]
    defect: str
    always: str
    answer: Mapping[str, Any]


@cache
def known_defects() -> tuple[KnownDefect, ...]:
    """Return all rows."""
    text = resources.files("modular_tf.loading").joinpath("known_defects.toml").read_text("utf-8")
    return tuple(
        KnownDefect(
            id=row["id"],
            library=row["library"],
            schemes=tuple(row["schemes"]),
            defect=row["defect"],
            always=row.get("always", ""),
            answer=_typed(row.get("answer", {})),
        )
        for row in tomllib.loads(text)["defect"]
    )


def defects_of(library: str, scheme: str | None = None) -> list[KnownDefect]:
    """Return the rows of a library file, of one scheme or of all."""
    name = os.path.basename(library)
    return [
        row
        for row in known_defects()
        if fnmatch.fnmatchcase(name, row.library) and (scheme is None or scheme in row.schemes)
    ]


def answers_for(library: str, scheme: str) -> Answers:
    """Return what the host does for a scheme of a library; rows add up."""
    merged: dict[str, Any] = {}
    for row in defects_of(library, scheme):
        for name, value in row.answer.items():
            merged[name] = merged[name] | value if name in merged else value
    return Answers(**merged) if merged else NO_ANSWERS


def _typed(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Bring a row's TOML values into the types of `Answers`."""
    known = {entry.name for entry in fields(Answers)}
    if unknown := answer.keys() - known:
        raise ValueError(f"known_defects.toml: unknown answers {sorted(unknown)}")
    typed = {name: frozenset(v) if isinstance(v, list) else v for name, v in answer.items()}
    if "missing_codes" in typed:
        typed["missing_codes"] = frozenset(Code[name] for name in typed["missing_codes"])
    return typed
