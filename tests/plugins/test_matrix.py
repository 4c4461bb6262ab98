"""The list of variants and the sources agree, and every variant can be built."""

from __future__ import annotations

import re

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.check.catalogue import all_rules
from modular_tf.rules import Severity
from tests.plugins.matrix import FOLDER, variants

_ALL = [variant for family in ("filesystem", "device") for variant in variants(family).values()]
_STAGES = {"none", "probe", "open", "init", "validation", "operation"}
_STATES = {"loaded", "rejected", "failed", "quarantined"}
_FAULTS = {None, "crashed", "exited", "hung"}


def _build(variant, fixture_plugin, fixture_device_plugin):
    builder = fixture_plugin if variant.family == "filesystem" else fixture_device_plugin
    return builder(variant.name)


@pytest.mark.parametrize("variant", _ALL, ids=str)
def test_a_variant_is_described_in_known_words(variant):
    assert variant.stage in _STAGES
    assert variant.state in _STATES
    assert variant.fault in _FAULTS
    assert variant.rule is None or variant.rule in all_rules()


@pytest.mark.parametrize("variant", _ALL, ids=str)
def test_what_is_refused_breaks_a_rule_or_ends_the_process(variant):
    if variant.state != "loaded":
        assert variant.rule or variant.fault
    elif variant.stage in {"none", "operation"}:
        assert variant.rule is None
    else:
        assert "scheme" in variant.about or _warns(variant.rule)


def _warns(rule):
    return all_rules()[rule].severity is Severity.WARNING


@pytest.mark.parametrize("family", ["filesystem", "device"])
def test_sources_and_list_name_the_same_variants(family):
    sources = "".join(file.read_text() for file in (FOLDER / family).glob("*_variants.c"))
    listed = [name for name, variant in variants(family).items() if variant.in_a_table]

    assert sorted(re.findall(r'^    \{"([^"]+)", ', sources, re.MULTILINE)) == sorted(listed)


@pytest.mark.parametrize("variant", _ALL, ids=str)
def test_a_variant_can_be_built(variant, fixture_plugin, fixture_device_plugin):
    library = _build(variant, fixture_plugin, fixture_device_plugin)
    entry_point = {"filesystem": "TF_InitPlugin", "device": "SE_InitPlugin"}[variant.family]

    with library.open("rb") as file:
        elf = ELFFile(file)
        exported = elf.get_section_by_name(".dynsym").get_symbol_by_name(entry_point)
        dynamic = elf.get_section_by_name(".dynamic")
        needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]

    assert bool(exported) is (variant.name != "no-init")
    assert (variant.needed in needed) is bool(variant.needed)


def test_a_companion_lies_beside_its_plugin(fixture_plugin):
    assert fixture_plugin("companion").with_name("libfixture_companion.so").is_file()


def test_schemes_make_different_libraries(fixture_plugin):
    assert fixture_plugin("good", scheme="one") != fixture_plugin("good", scheme="two")
