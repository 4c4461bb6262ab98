"""Every variant of the fixture plugin that survives loading ends as `matrix.toml` says."""

from __future__ import annotations

import pytest

from modular_tf.device.details import DeviceDetails
from modular_tf.device.platform import load_device_platform
from modular_tf.device.registry import DeviceRegistry
from modular_tf.discovery.linking.host_exports import REPLACED_SONAMES
from modular_tf.errors import InternalError
from modular_tf.loading.binding import bind
from modular_tf.loading.device_loader import RefusedDevicePluginError
from tests.plugins.matrix import variants

SURVIVING = [variant for variant in variants("device").values() if variant.fault is None]
REFUSED = [variant for variant in SURVIVING if variant.state == "failed"]
WARNED = [variant for variant in SURVIVING if variant.state == "loaded" and variant.rule]
CLEAN = [variant for variant in SURVIVING if variant.state == "loaded" and not variant.rule]


@pytest.fixture
def load(fixture_device_plugin):
    def load_variant(name):
        library = bind(str(fixture_device_plugin(name)), [], REPLACED_SONAMES)
        return load_device_platform(library, plugin_name=name)

    return load_variant


@pytest.fixture
def listed(load):
    """Load a variant; return what its devices show, and what could not be listed."""

    def list_variant(name):
        with load(name) as platform:
            registry = DeviceRegistry()
            registry.register(platform, plugin=name)
            listing = registry.listing()
            return [device.to_dict() for device in listing.devices], listing.problems

    return list_variant


def test_all_three_endings_are_there():
    assert len(SURVIVING) == len(REFUSED) + len(WARNED) + len(CLEAN)
    assert min(map(len, (REFUSED, WARNED, CLEAN))) > 5


@pytest.mark.parametrize("variant", REFUSED, ids=str)
def test_refused(load, variant):
    with pytest.raises(RefusedDevicePluginError) as caught:
        load(variant.name)
    assert caught.value.rule == variant.rule


@pytest.mark.parametrize("variant", WARNED, ids=str)
def test_accepted_with_a_warning(load, variant):
    with load(variant.name) as platform:
        assert {found.rule_id for found in platform.warnings} == {variant.rule}


@pytest.mark.parametrize("variant", CLEAN, ids=str)
def test_accepted_without_a_warning(load, variant):
    platform = load(variant.name)
    assert platform.warnings == ()
    if variant.name == "destroy-throws":
        with pytest.raises(InternalError, match="thrown by destroy_platform"):
            platform.close()
    else:
        platform.close()


@pytest.mark.parametrize(
    ("name", "count"),
    [("count-0", 0), ("count-5", 5), ("count-negative", 0), ("count-untouched", 0)],
)
def test_counts(listed, name, count):
    devices, problems = listed(name)
    assert len(devices) == count
    assert problems == ()


@pytest.mark.parametrize(("name", "rule"), [("count-huge", "SE-041"), ("count-fails", "SE-040")])
def test_counts_that_are_no_counts(listed, name, rule):
    devices, [problem] = listed(name)
    assert devices == []
    assert problem.error.rule == rule


@pytest.mark.parametrize(
    ("name", "working"),
    [
        ("good", [True, True]),
        ("create-second-device-fails", [True, False]),
        ("create-device-fails", [False, False]),
        ("device-size-0", [True, True]),
    ],
)
def test_devices_fail_one_by_one(listed, name, working):
    devices, problems = listed(name)
    assert [device["error"] is None for device in devices] == working
    assert problems == ()


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("details-null", {"hardware_name", "vendor", "pci_bus_id"}),
        ("details-unreadable", {"hardware_name"}),
        ("details-unknown", {"numa_node", "memory_bandwidth", "gflops"}),
        ("details-throw", {"numa_node"}),
        ("no-device-fns", {"numa_node", "memory_bandwidth", "gflops"}),
        ("dialect-rfc", set(DeviceDetails().as_dict())),
        ("good", set()),
    ],
)
def test_details_that_are_not_known(listed, name, unknown):
    devices, _ = listed(name)
    for device in devices:
        assert {key for key, value in device.items() if value is None} == unknown | {"error"}
