"""Every variant ends in the state that `matrix.toml` gives it, for the reason given there."""

from __future__ import annotations

import pytest

from modular_tf.errors import InternalError
from modular_tf.service.service import PluginService
from tests.plugins.matrix import Variant, variants

_FILESYSTEMS = list(variants("filesystem").values())
_DEVICES = list(variants("device").values())


def _in_process(family: list[Variant]) -> list[Variant]:
    """Leave out those that end the process which loads them, and the one that cannot be closed."""
    return [v for v in family if v.fault is None and v.name != "destroy-throws"]


def _outcome(library):
    with PluginService(plugin_paths=[library], bundled=False) as service:
        service.load(library)
        (record,) = (found for found in service.plugins() if found.path == str(library))
    return record


_UNCOUNTED = {"SE-040", "SE-041"}  # told by the record of a plugin that is loaded all the same


def _broken_rules(record):
    return {reason.rule for reason in (*record.reasons, *record.warnings) if reason.rule}


def _expected_rules(variant):
    return {variant.rule} if variant.rule else set()


@pytest.mark.parametrize("variant", _in_process(_FILESYSTEMS), ids=str)
def test_a_filesystem_variant(variant, fixture_plugin):
    record = _outcome(fixture_plugin(variant.name))

    assert (record.state.value, _broken_rules(record)) == (variant.state, _expected_rules(variant))
    assert bool(record.schemes) is (record.state.value == "loaded" and variant.rule != "FS-005")


@pytest.mark.parametrize("variant", _in_process(_DEVICES), ids=str)
def test_a_device_variant(variant, fixture_device_plugin):
    record = _outcome(fixture_device_plugin(variant.name))

    assert record.state.value == variant.state
    # Every broken rule is told; what one mistake breaks besides its own rule is not the matter.
    assert _expected_rules(variant) <= _broken_rules(record)
    assert bool(_broken_rules(record) - _UNCOUNTED) is bool(variant.rule)
    assert bool(record.device_types) is (record.state.value == "loaded")


@pytest.mark.parametrize(("variant", "rule"), [("count-fails", "SE-040"), ("count-huge", "SE-041")])
def test_a_device_plugin_that_cannot_be_counted_says_why(variant, rule, fixture_device_plugin):
    record = _outcome(fixture_device_plugin(variant))

    assert (record.state.value, record.reason.rule) == ("loaded", rule)


def test_a_device_plugin_that_throws_while_it_is_destroyed(fixture_device_plugin):
    library = fixture_device_plugin("destroy-throws")

    with pytest.raises(InternalError, match="thrown by destroy_platform"):
        _outcome(library)
