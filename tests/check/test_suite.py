"""A check states its rule in its docstring."""

from __future__ import annotations

import subprocess
import sys

import pytest

from modular_tf.check.catalogue import all_rules
from modular_tf.check.check import HOST, Suite
from modular_tf.check.level import Level
from modular_tf.rules import Severity, rule, violation


@pytest.fixture
def suite(monkeypatch):
    """A suite whose rules are forgotten."""
    monkeypatch.setattr(violation, "_by_id", dict(violation._by_id))
    return Suite("filesystem", "any", ways=HOST, traits="writes", source="filesystem.h, {slot}")


def test_a_docstring_is_the_rule_and_a_check_may_differ_from_its_suite(suite):
    @suite.check("FS-998", "stat", "delete_file", severity=Severity.WARNING)
    def names_that_go(_):
        """What was deleted
        is not there.

        Otherwise: It is
        listed.
        Remedy: Forget it.

        Stores with caches.
        """

    (check,) = suite.checks
    stated = check.rule

    assert (check.id, check.kind, check.group) == ("FS-998", "filesystem", "any")
    assert check.level is Level.WORKS
    assert (check.needs, check.ways, check.traits) == (("stat", "delete_file"), HOST, {"writes"})
    assert stated is rule("FS-998")
    assert stated.requirement == "What was deleted is not there."
    assert (stated.consequence, stated.remedy) == ("It is listed.", "Forget it.")
    assert (stated.source, stated.severity) == ("filesystem.h, stat", Severity.WARNING)
    assert check.run is names_that_go

    @suite.check("FS-999", level=Level.HARD, traits="", seconds=3)
    def differs(_):
        """It holds.

        Otherwise: It breaks.
        Remedy: Mend it.
        Source: POSIX
        """

    own = suite.checks[1]
    assert (own.level, own.traits, own.seconds) == (Level.HARD, frozenset(), 3)
    assert own.rule.source == "POSIX"


@pytest.mark.parametrize(
    "text",
    [None, "It holds.", "It holds.\n\nOtherwise: It breaks.", "It holds.\n\nRemedy: Mend it."],
)
def test_a_rule_is_stated_whole(suite, text):
    def one(_):
        pass

    one.__doc__ = text
    with pytest.raises(ValueError, match="the check FS-998 must state its rule"):
        suite.check("FS-998")(one)


def test_rules_are_stated_where_the_interpreter_leaves_docstrings_out():
    count = "from modular_tf.check.catalogue import all_rules; print(len(all_rules()))"
    command = [sys.executable, "-OO", "-c", count]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    assert int(ended.stdout) == len(all_rules())
