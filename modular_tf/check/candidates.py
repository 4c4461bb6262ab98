"""The libraries that are to be checked, by path, folder or name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.rules import Violation


def candidates_of(
    targets: Iterable[str],
) -> tuple[list[Candidate], list[Violation]]:
    """Return the libraries that names stand for, each once, and what went wrong on the way.

    Args:
        targets: Files, folders (all libraries in them), or names as `modular-tf list` has them.

    Raises:
        NotFoundError: A target is neither a path nor the name of a plugin that discovery finds.
    """
    paths: list[str] = []
    names: list[str] = []
    for target in targets:
        (paths if os.path.lexists(target) or os.sep in target else names).append(target)
    searched = SearchPaths.of_process(arguments=paths)
    by_path = discover(searched._replace(sources=frozenset({Source.ARGUMENT})))
    found = {candidate.identity: candidate for candidate in by_path.candidates}
    for candidate in _named(names) if names else ():
        found.setdefault(candidate.identity, candidate)
    return list(found.values()), list(by_path.problems)


def _named(names: list[str]) -> list[Candidate]:
    everything = discover(SearchPaths.of_process())
    known = {candidate.name: candidate for candidate in everything.candidates}
    for name in names:
        if name not in known:
            raise NotFoundError(
                f"{name}: no such file, and no plugin of that name; "
                f"`modular-tf list` names {', '.join(sorted(known)) or 'none'}",
                path=name,
            )
    return [known[name] for name in names]
