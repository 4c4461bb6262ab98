"""The pages on rules are those of the table, and explain every rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.catalogue import all_rules
from modular_tf.check.rule_pages import page_of, rule_pages

PAGES = Path(__file__).parents[2] / "docs" / "rules"
RULES = all_rules()


@pytest.mark.parametrize("name", rule_pages())
def test_the_page_in_the_repository_is_the_one_of_the_table(name):
    written = (PAGES / name).read_text(encoding="utf-8")

    assert written == rule_pages()[name], "run scripts/write_check_pages"


def test_there_are_no_other_pages():
    assert {path.name for path in PAGES.iterdir()} == rule_pages().keys()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_is_in_the_index_and_on_the_page_that_it_names(rule):
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    page = (PAGES / page_of(rule)).read_text(encoding="utf-8")

    assert index.count(f"| [{rule.id}]({page_of(rule)}#{rule.id.lower()}) |") == 1
    assert page.count(f"### {rule.id}\n\n{rule.requirement}\n") == 1
