"""Examples of every command, which its help shows; read from `examples.toml` for the help alone."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADING = "examples:"
_FILE = "examples.toml"


@cache
def examples() -> Mapping[str, Mapping[str, str]]:
    """Return, for each command such as `fs ls`, command lines and what they are for.

    The lines lack the name of the program.
    """
    text = Path(__file__).with_name(_FILE).read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    return found


def examples_text(command: str) -> str:
    """Return the examples of a command such as `modular-tf fs ls`, as its help shows them."""
    program, _, verb = command.partition(" ")
    lines = [HEADING]
    for words, purpose in examples().get(verb, {}).items():
        lines += [f"  {program} {words}", f"      {purpose}"]
    return "\n".join(lines)
