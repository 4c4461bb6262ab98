"""The pages on checks are those of the table, and name every check."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.device import host_memories
from modular_tf.check.handbook import page, page_names

PAGES = Path(__file__).parents[2] / "docs" / "checks"


@pytest.mark.parametrize("kind", page_names())
def test_the_page_in_the_repository_is_the_one_of_the_table(kind):
    written = (PAGES / page_names()[kind]).read_text(encoding="utf-8")

    assert written == page(kind), "run scripts/write_check_pages"


def test_every_check_has_its_place():
    text = "".join(page(kind) for kind in page_names())

    for check in all_checks().values():
        assert f"### {check.id}\n" in text
        assert check.rule.requirement in text


def test_the_readme_tells_how_many_there_are():
    readme = (PAGES.parents[1] / "README.md").read_text(encoding="utf-8")

    assert f"by {len(all_checks())} numbered checks" in readme


def test_the_numbers_of_a_rule_are_those_of_its_check():
    """SE-146 has two: what works anywhere today, and what later hosts ask for."""
    required = all_checks()["SE-146"].rule.requirement

    for number in (host_memories._ALIGNMENT, host_memories._NEWER_ALIGNMENT):
        assert f"of {number}" in required
