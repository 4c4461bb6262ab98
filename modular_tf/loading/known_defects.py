"""Which parts of published plugins have known defects, and the classes that work around them.

The code that reads `known_defects.toml` names no vendor; its rows on defects are for people and for
the tests that they name.
"""

from __future__ import annotations

import fnmatch
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class KnownStore:
    """A part of a plugin that has known defects."""

    library: str  # a glob that matches the file name of the plugin's library
    schemes: frozenset[str]
    implementation: str  # module.class in `modular_tf.filesystem.workarounds`
    guarded_functions: frozenset[str]  # of the C++ library, to which the plugin is not bound


@cache
def known_stores() -> tuple[KnownStore, ...]:
    """Return all stores of the table."""
    text = Path(__file__).with_name("known_defects.toml").read_text("utf-8")
    return tuple(
        KnownStore(
            library=row["library"],
            schemes=frozenset(row["schemes"]),
            implementation=row["implementation"],
            guarded_functions=frozenset(row.get("guarded_functions", ())),
        )
        for row in tomllib.loads(text)["store"]
    )


def stores_of(library: str) -> list[KnownStore]:
    """Return the stores of a library, which is known by its file name."""
    name = Path(library).name
    return [store for store in known_stores() if fnmatch.fnmatchcase(name, store.library)]
