"""The variants of the fixture plugins, as `matrix.toml` lists them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
TENSORFLOW_LIBRARY = "libtensorflow_framework.so.2"


@dataclass(frozen=True)
class Variant:
    """One variant of a fixture plugin; the head of `matrix.toml` says what the fields mean."""

    family: str  # "filesystem" or "device"
    name: str
    about: str
    stage: str
    state: str
    rule: str | None = None
    fault: str | None = None
    defines: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    needed: str = TENSORFLOW_LIBRARY
    versioned: bool = False
    companion: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def differs_in_the_binary(self) -> bool:
        """Whether the C sources know nothing of it: what it registers is the good variant's."""
        usual = self.needed == TENSORFLOW_LIBRARY and not self.versioned and not self.companion
        return self.name == "good" or bool(self.defines) or not usual


@cache
def variants(family: str) -> dict[str, Variant]:
    """Return the variants of the family `filesystem` or `device`, by name, in the file's order."""
    rows = tomllib.loads((FOLDER / "matrix.toml").read_text(encoding="utf-8"))[family]
    return {name: _variant(family, name, row) for name, row in rows.items()}


def _variant(family: str, name: str, row: dict[str, object]) -> Variant:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Variant(family, name, **fields)  # type: ignore[arg-type]
