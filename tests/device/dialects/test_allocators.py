"""The allocators of the RFC of 2020-09-08: one of two kinds, which serves all memory."""

from __future__ import annotations

import gc

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.abi.status_codes import Code
from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import (
    FailedPreconditionError,
    ModularTFError,
    OutOfMemoryError,
    UnimplementedError,
)
from modular_tf.loading.device_tables import allocator_of
from tests.device.dialects.building import Build, DialectPlugin

RFC = Dialect.DEVICE_RFC


KINDS = {"PLAIN": "allocator", "CUSTOM": "custom_allocator"}
MIB = 1 << 20


def build(allocator, *, sizes=True, form="FILLS", **macros):
    return DialectPlugin(Build(RFC, sizes, form, {"ALLOCATOR": allocator, **macros}))


def devices_of(platform):
    registry = DeviceRegistry()
    registry.register(platform, plugin="dialect")
    return registry.devices("DIALECT")


def round_trip(device):
    with device.allocate(1000) as memory:
        out = bytearray(1000)
        device.memcpy_htod(memory, b"x" * 1000)
        device.memcpy_dtoh(out, memory)
    assert out == b"x" * 1000


def slots(plugin):
    with plugin.load() as platform:
        fns = platform.tables.given_fns
        kind = allocator_of(fns)
    names = ("allocator", "custom_allocator")
    return tuple(fns.value(f"create_{name}") if name == kind else None for name in names)


@pytest.mark.parametrize("form", ["FILLS", "ASSIGNS", "SAVED", "OWN"])
@pytest.mark.parametrize("sizes", [True, False])
class TestReachable:
    def test_none(self, sizes, form):
        assert slots(build("NONE", sizes=sizes, form=form)) == (None, None)

    def test_a_plain_one(self, sizes, form):
        plugin = build("PLAIN", sizes=sizes, form=form)
        assert slots(plugin) == (plugin.library.symbol("fns_create_allocator"), None)

    def test_a_custom_one(self, sizes, form):
        plugin = build("CUSTOM", sizes=sizes, form=form)
        assert slots(plugin) == (None, plugin.library.symbol("fns_create_custom_allocator"))


def test_no_allocator_is_created_while_loading():
    plugin = build("PLAIN")
    with plugin.load() as platform:
        platform.device_details(0)
    assert not any("allocator" in call for call in plugin.calls)


@pytest.mark.parametrize("sizes", [True, False])
def test_two_of_them_are_refused(sizes):
    plugin = build("BOTH", sizes=sizes)
    error = plugin.refusal()
    assert error.rule == "SE-034"
    assert plugin.calls == ["init", "destroy_platform", "destroy_platform_fns"]


def test_one_that_cannot_be_destroyed_is_not_offered():
    plugin = build("HALF")
    with plugin.load() as platform:
        assert [found.rule_id for found in platform.warnings] == ["SE-035"]
    assert slots(plugin) == (None, None)


def test_other_dialects_have_none():
    assert slots(DialectPlugin(Build(Dialect.DEVICE_V209))) == (None, None)


@pytest.mark.parametrize("form", ["FILLS", "ASSIGNS", "OWN"])
@pytest.mark.parametrize("sizes", [True, False])
class TestServing:
    def test_a_plain_one_is_cut_by_the_host(self, sizes, form):
        plugin = build("PLAIN", sizes=sizes, form=form)
        with plugin.load() as platform:
            first, second = devices_of(platform)
            for device in (first, first, second):
                round_trip(device)
            with first.allocate_host(100) as memory:
                memory.view[:] = b"h" * 100
            assert first.memory_usage().total == 512 * MIB
            assert first.allocator_stats().num_allocs == 2
            assert first.allocator_stats().bytes_limit == (512 - 255) * MIB
        calls = [call for call in plugin.calls if "alloc" in call or call.startswith("destroy_d")]

        assert calls.count("allocate") == calls.count("deallocate") == 2  # one region per device
        assert calls.count("host_memory_allocate") == calls.count("host_memory_deallocate") == 1
        assert calls.count("create_allocator") == calls.count("destroy_allocator") == 1
        assert calls[0] == "create_allocator"
        assert calls[-3:] == ["destroy_allocator", "destroy_device", "destroy_device"]
        assert not any(call.startswith("STRANGE") for call in plugin.calls)

    def test_a_custom_one_serves_as_it_is(self, sizes, form):
        plugin = build("CUSTOM", sizes=sizes, form=form)
        with plugin.load() as platform:
            first, second = devices_of(platform)
            for device in (first, first, second):
                round_trip(device)
                gc.collect()
            with first.allocate_host(100) as memory:
                memory.view[:] = b"h" * 100
            assert first.memory_usage().total == 512 * MIB
            assert first.allocator_stats().num_allocs == 12
        calls = [call for call in plugin.calls if "alloc" in call or call.startswith("destroy_d")]

        assert calls.count("allocate_raw") == calls.count("deallocate_raw") == 3
        assert calls.count("host_allocate_raw") == calls.count("host_deallocate_raw") == 1
        assert calls.count("create_custom_allocator") == 1
        assert calls[-3:] == ["destroy_custom_allocator", "destroy_device", "destroy_device"]
        assert not any(call.startswith("STRANGE") for call in plugin.calls)


def test_no_allocator_means_the_executor_s_functions():
    plugin = build("NONE")
    with plugin.load() as platform:
        round_trip(devices_of(platform)[0])

    assert not any("alloc" in call for call in plugin.calls)


def test_two_services_share_one_allocator():
    plugin = build("CUSTOM")
    with plugin.load() as one, plugin.load() as two:
        round_trip(devices_of(one)[0])
        round_trip(devices_of(two)[0])

    assert plugin.calls.count("create_custom_allocator") == 1
    assert plugin.calls.count("destroy_custom_allocator") == 1


class TestUnifiedMemory:
    def test_is_the_plain_one_s_to_offer(self):
        plugin = build("PLAIN", UNIFIED=1)
        with plugin.load() as platform:
            with devices_of(platform)[0].allocate_unified(10) as memory:
                memory.view[:] = b"0123456789"
            gc.collect()

        assert plugin.calls.count("unified_memory_allocate") == 1
        assert plugin.calls.count("unified_memory_deallocate") == 1

    @pytest.mark.parametrize("kind", KINDS)
    def test_is_not_there_otherwise(self, kind):
        with build(kind).load() as platform:
            device = devices_of(platform)[0]
            with pytest.raises(UnimplementedError, match="no unified_memory_allocate"):
                device.allocate_unified(10)

    def test_needs_both_functions_where_it_is_offered(self):
        missing = "unified_memory_deallocate is NULL"
        with build("PLAIN", UNIFIED=1, ALLOCATOR_LACKS=5).load() as platform:
            device = devices_of(platform)[0]
            with pytest.raises(FailedPreconditionError, match=missing):
                device.allocate(1)


@pytest.mark.parametrize("kind", KINDS)
class TestFailing:
    def test_a_status_is_passed_on_and_the_next_attempt_asks_again(self, kind):
        plugin = build(kind, ALLOCATOR_FAILS=7)
        with plugin.load() as platform:
            device = devices_of(platform)[0]
            for _ in range(2):
                with pytest.raises(ModularTFError, match="no memory to speak of") as caught:
                    device.allocate(1)
            assert caught.value.code is Code.PERMISSION_DENIED
            assert caught.value.rule == "SE-046"
            assert caught.value.plugin == "dialect"
            assert caught.value.operation == f"create_{KINDS[kind]}"
            assert device.details is not None

        assert plugin.calls.count(f"create_{KINDS[kind]}") == 2
        assert f"destroy_{KINDS[kind]}" not in plugin.calls

    @pytest.mark.parametrize("slot", [0, 1, 2, 3])
    def test_a_missing_function_is_refused_and_the_allocator_destroyed(self, kind, slot):
        plugin = build(kind, ALLOCATOR_LACKS=slot)
        with plugin.load() as platform:
            with pytest.raises(FailedPreconditionError, match="is NULL") as caught:
                devices_of(platform)[0].allocate(1)
            assert caught.value.rule == "SE-047"
            assert plugin.calls[-1] == f"destroy_{KINDS[kind]}"

        assert plugin.calls.count(f"destroy_{KINDS[kind]}") == 1

    def test_exhaustion_is_out_of_memory_and_passes(self, kind):
        plugin = build(kind)
        with plugin.load() as platform:
            device = devices_of(platform)[0]
            plugin.exhaust()
            for allocate in (device.allocate, device.allocate_host):
                with pytest.raises(OutOfMemoryError):
                    allocate(1000)
            plugin.recover()
            round_trip(device)
