"""What TensorFlow demands of later layouts is a warning for a plugin of the RFC's layout."""

from __future__ import annotations

import gc

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import UnimplementedError
from tests.device.dialects.building import FORMS, LAYOUTS, Build, DialectPlugin

RFC = Dialect.DEVICE_RFC
LATER = [dialect for dialect in LAYOUTS if dialect is not RFC]
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


def devices_of(platform):
    registry = DeviceRegistry()
    registry.register(platform, plugin="dialect")
    return registry.devices(platform.device_type)


def warnings(plugin):
    with plugin.load() as platform:
        return [(found.rule_id, found.message) for found in platform.warnings]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [True, False])
def test_nothing_to_destroy_the_platform(sizes, form):
    plugin = build(sizes=sizes, form=form, DESTROYS=0)
    slots = ("destroy_platform", "destroy_platform_fns")

    found = [message for rule, message in warnings(plugin) if rule == "SE-036"]
    assert found == [f"SE_PlatformRegistrationParams.{slot} is NULL" for slot in slots]
    assert plugin.calls[-1] == "destroy_stream_executor"


@pytest.mark.parametrize("dialect", LATER)
def test_later_layouts_must_destroy_the_platform(dialect):
    found = [violation.rule_id for violation in build(dialect, DESTROYS=0).refusal().violations]
    assert found == ["SE-009", "SE-010"]


@pytest.mark.parametrize(("macro", "field"), [("PLATFORM_NAME", "name"), ("TYPE_NAME", "type")])
class TestNames:
    @pytest.mark.parametrize("name", ["MyDevice", "PluggableDevice", "gpu", "NPU2", "a_b"])
    def test_what_a_device_name_can_hold_is_accepted(self, macro, field, name):
        found = warnings(build(**{macro: f'"{name}"'}))
        assert found == [
            ("SE-036", f"SP_Platform.{field} is {name!r}, expected [A-Z][A-Z_]{{0,999}}")
        ]

    @pytest.mark.parametrize("name", ["", "NPU-X", "A/B", "A:B", "_GPU", "1A"])
    def test_what_it_cannot_hold_is_refused(self, macro, field, name):
        error = build(**{macro: f'"{name}"'}).refusal()
        assert error.rule == {"name": "SE-013", "type": "SE-015"}[field]

    @pytest.mark.parametrize("dialect", LATER)
    def test_later_layouts_have_capitals(self, macro, field, dialect):
        error = build(dialect, **{macro: '"MyDevice"'}).refusal()
        assert error.rule == {"name": "SE-013", "type": "SE-015"}[field]


def test_a_missing_slot_is_warned_of_and_fails_where_it_is_needed():
    plugin = build(STREAM_SLOTS=0)
    with plugin.load() as platform:
        [warning] = platform.warnings
        assert (warning.rule_id, warning.message) == (
            "SE-036",
            "NULL in SP_StreamExecutor: create_stream",
        )
        device = devices_of(platform)[0]
        with device.allocate(8) as memory:
            device.memcpy_htod(memory, b"12345678")  # without a stream
        with pytest.raises(UnimplementedError, match="no create_stream"):
            device.create_stream()


@pytest.mark.parametrize("dialect", LATER)
def test_later_layouts_need_every_slot(dialect):
    error = build(dialect, STREAM_SLOTS=0).refusal()
    assert [found.rule_id for found in error.violations] == ["SE-025"]


@pytest.mark.parametrize("slot", [slot.name for slot in layout("SP_StreamExecutor", RFC).slots])
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
    with build(MEMORY_SLOTS=0).load() as platform:
        [warning] = platform.warnings
        assert warning.message == f"NULL in SP_StreamExecutor: {', '.join(MEMORY)}"
        with pytest.raises(UnimplementedError, match="no allocate"):
            devices_of(platform)[0].allocate(1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("kind", ["PLAIN", "CUSTOM"])
def test_an_allocator_takes_the_place_of_the_memory_slots(kind, sizes, form):
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


def test_half_an_allocator_takes_no_place():
    found = warnings(build(ALLOCATOR="HALF", MEMORY_SLOTS=0))
    assert [rule for rule, _ in found] == ["SE-035", "SE-036"]
