"""What TensorFlow demands of later layouts is a warning for a plugin of the RFC's layout."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from modular_tf.abi.layouts import layout
from modular_tf.errors import FailedPreconditionError, UnimplementedError
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.device.dialects.building import FORMS, LAYOUTS, Build, DialectPlugin, devices_of
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


@pytest.mark.parametrize("names", [("MyDevice", "PluggableDevice"), ("NPU2", "a_b")])
def test_what_a_device_name_can_hold_is_accepted(names):
    found = warnings(named(*names))
    assert found == [
        ("SE-036", f"SP_Platform.{field} is {name!r}, expected [A-Z][A-Z_]{{0,999}}")
        for field, name in zip(("name", "type"), names, strict=True)
    ]


@pytest.mark.parametrize("names", [("", "NPU-X"), ("A/B", "A:B"), ("_GPU", "1A")])
def test_what_it_cannot_hold_is_refused(names):
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


USED_BY_ARRAYS = ["create_stream", "memcpy_htod", "get_stream_status", "synchronize_all_activity"]
SLOTS = [slot.name for slot in layout("SP_StreamExecutor", RFC).slots]


@pytest.mark.parametrize("slot", sampled(SLOTS, USED_BY_ARRAYS))
def test_arrays_work_or_name_the_slot_that_is_missing(slot):
    with build(WITHOUT=slot).load() as platform:
        device = devices_of(platform)[0]
        for memory in ("device", "host", "unified"):
            try:
                with device.put(b"1234", memory=memory) as array:
                    array.copy_from(b"text")
                    assert array.to_bytes() == b"text"
            except UnimplementedError as error:
                assert f"the plugin has no {slot}" in error.message  # noqa: PT017
    del device, platform


def test_the_collector_takes_a_failed_wait_with_its_device():
    """Frames hold their error, the view of the bytes, and what the wait was for: a cycle."""

    def fail():
        plugin = build(WITHOUT="get_stream_status")
        with plugin.load() as platform, pytest.raises(UnimplementedError):
            devices_of(platform)[0].put(b"1234")

    gc.collect()
    fail()
    assert gc.collect() > 0


def test_streams_are_waited_for_one_by_one_without_a_wait_for_all():
    plugin = build(WITHOUT="synchronize_all_activity")
    with plugin.load() as platform:
        streams = [devices_of(platform)[0].create_stream() for _ in range(2)]
    assert all(stream.closed for stream in streams)
    ends = [call for call in plugin.calls if call in {"block_host_until_done", "destroy_stream"}]
    assert ends == ["block_host_until_done"] * 2 + ["destroy_stream"] * 2


def test_no_memory_at_all_is_warned_of_and_fails_where_it_is_needed():
    found = warnings(build(ALLOCATOR="HALF", MEMORY_SLOTS=0))
    assert [rule for rule, _ in found] == ["SE-035", "SE-036"]
    with build(MEMORY_SLOTS=0).load() as platform:
        [warning] = platform.warnings
        assert warning.message == f"NULL in SP_StreamExecutor: {', '.join(MEMORY)}"
        with pytest.raises(UnimplementedError, match="no allocate"):
            devices_of(platform)[0].allocate(1)


@pytest.mark.parametrize(
    ("form", "sizes", "kind"), sampled_product(FORMS, (True, False), ("PLAIN", "CUSTOM"))
)
def test_an_allocator_takes_the_place_of_the_memory_slots(form, sizes, kind):
    plugin = build(sizes=sizes, form=form, ALLOCATOR=kind, MEMORY_SLOTS=0)
    with plugin.load() as platform:
        assert "SE-036" not in [found.rule_id for found in platform.warnings]
        device = devices_of(platform)[0]
        out = bytearray(4)
        with device.allocate(4) as memory, device.allocate_host(4) as staged:
            staged.view[:] = b"text"
            device.memcpy_htod(memory, b"text")
            device.memcpy_dtoh(out, memory)
        assert out == b"text"
        assert device.memory_usage().total == 1 << 29

    allocate = {"PLAIN": "allocate", "CUSTOM": "allocate_raw"}[kind]
    assert allocate in plugin.calls
    assert not any(call.startswith("STRANGE") for call in plugin.calls)


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
