"""The numbers that documents and rules name are those of the checks."""

from __future__ import annotations

from pathlib import Path

from modular_tf.check.catalogue import all_checks
from modular_tf.check.device import memory


def test_the_readme_has_the_number_of_checks():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

    assert f"by {len(all_checks())} numbered checks" in readme


def test_the_numbers_of_a_rule_are_those_of_its_check():
    """SE-146 has two: what works anywhere today, and what later hosts ask for."""
    required = all_checks()["SE-146"].rule.requirement

    for number in (memory._HOST_ALIGNMENT, memory._NEWER_HOST_ALIGNMENT):
        assert f"of {number}" in required
