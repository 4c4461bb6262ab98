"""The rules of discovery and probe are stated in full."""

from __future__ import annotations

import re
from pathlib import Path

from modular_tf import discovery
from modular_tf.rules import loading

_OURS = loading.RULES


def test_every_field_is_stated() -> None:
    for rule in _OURS:
        assert re.fullmatch(r"LD-\d{3}", rule.id)
        for text in (rule.requirement, rule.consequence, rule.remedy):
            assert text.endswith("."), rule.id
        assert rule.source, rule.id


def test_ids_are_unique_and_in_order() -> None:
    ids = [rule.id for rule in loading.RULES]

    assert ids == sorted(set(ids))


def test_every_rule_is_used() -> None:
    folder = Path(discovery.__file__).parent
    text = "".join(path.read_text() for path in folder.rglob("*.py"))
    names = [name for name in loading.__all__ if name != "RULES"]

    assert [name for name in names if f"rules.{name}" not in text] == []
