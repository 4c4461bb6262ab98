"""What TensorFlow demands of later layouts is a warning for a plugin of the RFC's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.errors import FailedPreconditionError, UnimplementedError
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.device.controlled_plugin import devices_of
from tests.device.dialects.building import FORMS, LAYOUTS, Build, DialectPlugin
from tests.fixtures.compiler import compile_object, link_library
from tests.fixtures.matrices import sampled, sampled_product

RFC, *LATER = LAYOUTS
MEMORY = [
    "allocate",
    "deallocate",
    "host_memory_allocate",
    "host_memory_deallocate",
    "get_allocator_stats",
    "device_memory_usage",
]


def build(dialect=RFC, *, sizes=True, form="FILLS", **macros):
    return DialectPlugin(Build(dialect, sizes, form, macros))


def warnings(plugin):
    with plugin.load() as platform:
        return [(found.rule_id, found.message) for found in platform.warnings]


@pytest.mark.parametrize(("form", "sizes"), sampled_product(FORMS, (True, False)))
def test_nothing_to_destroy_the_platform(form, sizes):
    plugin = build(sizes=sizes, form=form, DESTROYS=0)
    slots = ("destroy_platform", "destroy_platform_fns")

    found = [message for rule, message in warnings(plugin) if rule == "SE-036"]
    assert found == [f"SE_PlatformRegistrationParams.{slot} is NULL" for slot in slots]
    assert plugin.calls[-1] == "destroy_stream_executor"


@pytest.mark.parametrize("dialect", sampled(LATER, LATER[:1]))
def test_later_layouts_are_refused_for_it(dialect):
    names = {"PLATFORM_NAME": '"MyDevice"', "TYPE_NAME": '"MyDevice"'}
    error = build(dialect, DESTROYS=0, STREAM_SLOTS=0, **names).refusal()
    rules = ["SE-009", "SE-010", "SE-013", "SE-015", "SE-025"]
    assert [found.rule_id for found in error.violations] == rules


def test_a_name_is_accepted_that_a_device_name_can_hold():
    for names in (("MyDevice", "PluggableDevice"), ("NPU2", "a_b")):
        assert warnings(named(*names)) == [
            ("SE-036", f"SP_Platform.{field} is {name!r}, expected [A-Z][A-Z_]{{0,999}}")
            for field, name in zip(("name", "type"), names, strict=True)
        ]
    for names in (("", "NPU-X"), ("A/B", "A:B"), ("_GPU", "1A")):
        violations = named(*names).refusal().violations
        assert [found.rule_id for found in violations] == ["SE-013", "SE-015"]


def named(platform, device_type):
    return build(PLATFORM_NAME=f'"{platform}"', TYPE_NAME=f'"{device_type}"')


def test_a_missing_slot_is_warned_of_and_fails_where_it_is_needed():
    plugin = build(STREAM_SLOTS=0)
    with plugin.load() as platform:
        [warning] = platform.warnings
        assert warning.rule_id == "SE-036"
        assert warning.message == "NULL in SP_StreamExecutor: create_stream"
        device = devices_of(platform)[0]
        with device.allocate(8) as memory:
            device.memcpy_htod(memory, b"12345678")  # without a stream
        with pytest.raises(UnimplementedError, match="no create_stream"):
            device.create_stream()

    with build(MEMORY_SLOTS=0).load() as platform:
        [warning] = platform.warnings
        assert warning.message == f"NULL in SP_StreamExecutor: {', '.join(MEMORY)}"
        with pytest.raises(UnimplementedError, match="no allocate"):
            devices_of(platform)[0].allocate(1)


def test_streams_are_waited_for_one_by_one_without_a_wait_for_all():
    plugin = build(WITHOUT="synchronize_all_activity")
    with plugin.load() as platform:
        streams = [devices_of(platform)[0].create_stream() for _ in range(2)]
    assert all(stream.closed for stream in streams)
    ends = [call for call in plugin.calls if call in {"block_host_until_done", "destroy_stream"}]
    assert ends == ["block_host_until_done"] * 2 + ["destroy_stream"] * 2


def test_the_example_of_the_rfc_serves_once_its_lost_pointers_are_repaired():
    source = Path(__file__).with_name("usage_example.cc")
    as_printed = ("-Wno-unused-parameter", "-Wno-missing-field-initializers")
    objects = [compile_object(source, options=as_printed)]
    library = link_library("libusage_example.so", objects, cxx=True)
    with PluginService(plugin_paths=[str(library)], bundled=False) as service:
        service.load()
        record = service.report()["usage_example"]
        assert record.state is State.LOADED
        assert [device.name for device in service.devices("GPU")] == ["GPU:0", "GPU:1"]
        assert {device.platform for device in service.devices("GPU")} == {"MyDevice"}

        found = [reason.message for reason in record.warnings if reason.rule_id == "SE-036"]
        assert [message.split(" is ")[0] for message in found[:-1]] == [
            "SE_PlatformRegistrationParams.destroy_platform",
            "SE_PlatformRegistrationParams.destroy_platform_fns",
            "SP_Platform.name",
        ]
        assert found[-1].startswith("NULL in SP_StreamExecutor: create_stream, ")
        assert " memcpy_htod" not in found[-1]
        assert "host_memory_allocate" not in found[-1]  # that is its allocator's

        with pytest.raises(FailedPreconditionError, match=r"SP_AllocatorFns\.allocate is NULL"):
            service.device("GPU:0").allocate(1)
