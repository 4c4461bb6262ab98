"""Every variant ends in the state that `matrix.toml` gives it, for the reason given there."""

from __future__ import annotations

import re

import pytest

from modular_tf.errors import InternalError
from modular_tf.service.service import PluginService
from tests.plugins.matrix import FOLDER, letters, own_scheme, variants

_UNCOUNTED = {"SE-040", "SE-041"}  # in the record of a plugin that is loaded all the same


def _in_process(family):
    """Leave out those that end the process which loads them, and the one that cannot be closed."""
    found = variants(family).values()
    return [v for v in found if v.fault is None and v.name != "destroy-throws"]


def _records(libraries):
    """Load all libraries into one service; return their records, in the same order."""
    with PluginService(plugin_paths=libraries, bundled=False) as service:
        for library in libraries:
            service.load(library)
        records = {record.path: record for record in service.plugins()}
    return [records[str(library)] for library in libraries]


def _broken_rules(record):
    return {reason.rule for reason in (*record.reasons, *record.warnings) if reason.rule}


def _expected_rules(variant):
    return {variant.rule} if variant.rule else set()


@pytest.mark.parametrize("family", ["filesystem", "device"])
def test_sources_and_list_name_the_same_variants(family):
    sources = "".join(file.read_text() for file in (FOLDER / family).glob("*_variants.c"))
    listed = [name for name, variant in variants(family).items() if variant.in_a_table]

    assert sorted(re.findall(r'^    \{"([^"]+)", ', sources, re.MULTILINE)) == sorted(listed)


def test_each_filesystem_variant_ends_as_it_should(fixture_plugin):
    listed = sorted(_in_process("filesystem"), key=lambda v: v.name == "two-schemes-first-bad")
    *libraries, last = [fixture_plugin(v.name, scheme=own_scheme(v.name)) for v in listed]
    # The second scheme of the last one is that of another, too.
    records = [*_records(libraries), *_records([last])]

    found = {
        variant.name: (record.state.value, _broken_rules(record), bool(record.schemes))
        for variant, record in zip(listed, records, strict=True)
    }

    assert found == {
        v.name: (v.state, _expected_rules(v), v.state == "loaded" and v.rule != "FS-005")
        for v in listed
    }


def test_each_device_variant_ends_as_it_should(fixture_device_plugin):
    """Every broken rule is reported; what a mistake breaks beside its own does not matter."""
    listed = _in_process("device")
    libraries = [
        fixture_device_plugin(v.name, device_type=f"T_{letters(i)}", platform=f"P_{letters(i)}")
        for i, v in enumerate(listed)
    ]

    for variant, record in zip(listed, _records(libraries), strict=True):
        assert record.state.value == variant.state, variant
        assert _expected_rules(variant) <= _broken_rules(record), variant
        assert bool(_broken_rules(record) - _UNCOUNTED) is bool(variant.rule), variant
        assert bool(record.device_types) is (record.state.value == "loaded"), variant


@pytest.mark.parametrize(("variant", "rule"), [("count-fails", "SE-040"), ("count-huge", "SE-041")])
def test_a_device_plugin_that_cannot_be_counted_says_why(variant, rule, fixture_device_plugin):
    (record,) = _records([fixture_device_plugin(variant)])

    assert (record.state.value, record.reason.rule) == ("loaded", rule)


def test_a_device_plugin_that_throws_while_it_is_destroyed(fixture_device_plugin):
    with pytest.raises(InternalError, match="thrown by destroy_platform"):
        _records([fixture_device_plugin("destroy-throws")])
