"""The rules of discovery, probe and loading are those that the rooms on a plugin's way apply."""

from __future__ import annotations

from pathlib import Path

from modular_tf import discovery
from modular_tf.rules import Rule, loading

ROOMS = ("discovery", "filesystem", "loading", "service")


def test_every_rule_is_used() -> None:
    package = Path(discovery.__file__).parents[1]
    paths = (path for room in ROOMS for path in (package / room).rglob("*.py"))
    text = "".join(path.read_text() for path in paths)
    names = [name for name, value in vars(loading).items() if isinstance(value, Rule)]

    assert len(names) > 20
    assert [name for name in names if name not in text] == []
