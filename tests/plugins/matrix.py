"""The variants of the fixture plugins, as `matrix.toml` lists them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
    stage: str = "operation"
    state: str = "loaded"
    rule: str | None = None
    fault: str | None = None
    defines: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    needed: str = TENSORFLOW_LIBRARY
    versioned: str = ""  # the version that the symbols of the needed library have
    companion: bool = False
    slot: str | None = None  # the one slot that is NULL, for the variants TABLE-SLOT-null

    def __str__(self) -> str:
        return self.name

    @property
    def in_a_table(self) -> bool:
        """Whether the C sources list it by name; if not, it differs in the binary or in a slot."""
        return self.registers != "good" and self.slot is None

    @property
    def registers(self) -> str:
        """The name by which the C sources know what it registers."""
        usual = self.needed == TENSORFLOW_LIBRARY and not self.versioned and not self.companion
        return self.name if usual and not self.defines else "good"


@cache
def variants(family: str) -> dict[str, Variant]:
    """Return the variants of the family `filesystem` or `device`, by name, in the file's order."""
    content = tomllib.loads((FOLDER / "matrix.toml").read_text(encoding="utf-8"))
    found = [_variant(family, name, row) for name, row in content[family].items()]
    if family == "device":
        found += [variant for group in content["device_slots"] for variant in _slots(group)]
    return {variant.name: variant for variant in found}


def _variant(family: str, name: str, row: dict[str, Any]) -> Variant:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Variant(family, name, **fields)


def _slots(group: dict[str, Any]) -> list[Variant]:
    rule = group.get("rule")
    return [
        Variant(
            family="device",
            name=f"{group['table']}-{slot}-null",
            about=f"has no {slot}",
            stage="validation" if rule else "none",
            state=group.get("state", "loaded"),
            rule=rule,
            slot=slot,
        )
        for slot in group["slots"]
    ]


def own_scheme(variant: str) -> str:
    """Return a scheme that no other variant has, nor one of two schemes as its second."""
    return variant.replace("-", ".")


def letters(number: int) -> str:
    """Return capital letters that stand for a number, for names that have no digits."""
    return "".join(chr(ord("A") + int(digit)) for digit in str(number))
