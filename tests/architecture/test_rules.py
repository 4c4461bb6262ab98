"""Rules: unique ids, documented in full, applied by some code and proved by some test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from modular_tf.check import catalogue
from modular_tf.check.catalogue import all_rules
from modular_tf.rules import Rule, loader_rules
from tests.architecture.imports import PACKAGE, modules

TESTS = Path(__file__).parents[1]
ID = re.compile(r"\b(?:FS|SE|KN|LD)-\d{3}\b")
NATIVE = re.compile(r"\bkRule\w+ = ([1-9]\d*)")
"""A rule of kernels by its number, as the host runtime has it."""
RULES = all_rules()

_HIGHEST = {"FS": 358, "KN": 103, "LD": 146, "SE": 329}
"""The highest number that was ever given, by letters: a new rule has the next one."""


def test_the_source_of_a_rule_is_a_document_that_an_author_can_know():
    assert {id_: rule.source for id_, rule in RULES.items() if "design" in rule.source} == {}


@cache
def _constants():
    """Return the ids of rules by the constants that hold them."""
    return {
        node.targets[0].id: _id_of(node.value)
        for module in modules()
        if module.name.startswith("modular_tf.rules")
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "Rule"
    }


def _id_of(call):
    named = call.args[0] if call.args else next(k.value for k in call.keywords if k.arg == "id")
    return ast.literal_eval(named)


def _named_below(folder, suffixes):
    """Return the rules that sources name, by id, by constant or by number."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.suffix in suffixes and "rules" not in path.relative_to(folder).parts[:2]
    )
    words = set(re.findall(r"\b[A-Z][A-Z_]+\b", text))
    numbered = {f"KN-{int(number):03}" for number in NATIVE.findall(text)}
    named = {_constants()[word] for word in words & _constants().keys()}
    return set(ID.findall(text)) | numbered | named


def _calls_of(name, module):
    """Yield the calls of a function in a module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield node


def test_every_rule_is_applied_and_is_proved_by_a_test():
    applied = _named_below(PACKAGE, {".py", ".c", ".cc", ".h"})

    assert sorted(RULES.keys() ^ applied) == []
    assert sorted(RULES.keys() - _named_below(TESTS, {".py", ".toml", ".cc"})) == []


def test_code_names_a_rule_by_its_constant():
    """But for the checks, each of which goes by the id of its rule; documentation may name ids."""
    loose = {
        module.name: sorted(ids)
        for module in modules()
        if module.room not in ("rules", "check") and (ids := set(_ids_in_code(module.tree)))
    }

    assert loose == {}


def _ids_in_code(tree):
    """Yield the ids in string constants that are used: in none that is a statement of its own."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            yield from ID.findall(node.value)


def test_the_table_is_whole_and_in_order():
    stated = [
        _id_of(call)
        for module in modules()
        if module.room == "rules"
        for call in _calls_of("Rule", module)
    ]
    listed = {
        f"modular_tf.check.{kind}.{name}"
        for kind, names in catalogue._MODULES.items()
        for name in names.split()
    }

    assert list(RULES) == sorted(RULES, key=lambda rule_id: (rule_id[:3], int(rule_id[3:])))
    assert sorted(loader_rules()) == sorted(stated)
    assert {module.name for module in modules() if [*_calls_of("Suite", module)]} == listed


def test_an_id_is_not_given_twice():
    first = next(iter(RULES))

    with pytest.raises(RuntimeError, match=f"{first} is used twice"):
        Rule(first, "requirement", "consequence", "remedy", "source")


def test_a_new_rule_has_the_number_after_the_highest_that_was_ever_given():
    """A rule that went keeps its number, so the highest number in use says nothing."""
    over = [rule_id for rule_id in RULES if int(rule_id[3:]) > _HIGHEST[rule_id[:2]]]

    assert over == [], f"raise _HIGHEST, by one for each new rule: {_HIGHEST}"


def test_every_rule_is_documented_in_full():
    assert [rule.id for rule in RULES.values() if not rule.source] == []
    short = [
        f"{rule.id}: {text!r}"
        for rule in RULES.values()
        for text in (rule.requirement, rule.consequence, rule.remedy)
        if len(text.split()) < 2 or not text.endswith(".")
    ]
    assert short == [], "\n".join(short)
