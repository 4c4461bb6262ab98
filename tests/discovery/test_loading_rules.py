"""The rules of discovery and probe are those that discovery applies."""

from __future__ import annotations

from pathlib import Path

from modular_tf import discovery
from modular_tf.rules import Rule, loading


def test_every_rule_is_used() -> None:
    folder = Path(discovery.__file__).parent
    text = "".join(path.read_text() for path in folder.rglob("*.py"))
    names = [name for name, value in vars(loading).items() if isinstance(value, Rule)]

    assert len(names) > 20
    assert [name for name in names if f"rules.{name}" not in text] == []
