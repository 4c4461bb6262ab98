"""The list of variants and the sources agree, and each row says what can be."""

from __future__ import annotations

import re

import pytest

from modular_tf.check.catalogue import all_rules
from modular_tf.rules import Severity
from tests.plugins.matrix import FOLDER, variants

_STAGES = {"none", "probe", "open", "init", "validation", "operation"}
_STATES = {"loaded", "rejected", "failed", "quarantined"}
_FAULTS = {None, "crashed", "exited", "hung"}


@pytest.mark.parametrize("family", ["filesystem", "device"])
def test_what_is_refused_breaks_a_rule_or_ends_the_process(family):
    for variant in variants(family).values():
        assert variant.stage in _STAGES, variant
        assert variant.state in _STATES, variant
        assert variant.fault in _FAULTS, variant
        assert variant.rule is None or variant.rule in all_rules(), variant
        if variant.state != "loaded":
            assert variant.rule or variant.fault, variant
        elif variant.stage in {"none", "operation"}:
            assert variant.rule is None, variant
        else:
            warns = variant.rule and all_rules()[variant.rule].severity is Severity.WARNING
            assert "scheme" in variant.about or warns, variant


@pytest.mark.parametrize("family", ["filesystem", "device"])
def test_sources_and_list_name_the_same_variants(family):
    sources = "".join(file.read_text() for file in (FOLDER / family).glob("*_variants.c"))
    listed = [name for name, variant in variants(family).items() if variant.in_a_table]

    assert sorted(re.findall(r'^    \{"([^"]+)", ', sources, re.MULTILINE)) == sorted(listed)


def test_schemes_make_different_libraries_and_a_companion_lies_beside_its_plugin(fixture_plugin):
    assert fixture_plugin("good", scheme="one") != fixture_plugin("good", scheme="two")
    assert fixture_plugin("companion").with_name("libfixture_companion.so").is_file()
