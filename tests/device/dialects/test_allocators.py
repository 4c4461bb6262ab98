"""The allocators of the RFC of 2020-09-08: one of two kinds, which serves all memory."""

from __future__ import annotations

import gc

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.abi.status_codes import Code
from modular_tf.errors import (
    FailedPreconditionError,
    ModularTFError,
    OutOfMemoryError,
    UnimplementedError,
)
from tests.device.controlled_plugin import devices_of
from tests.device.dialects.building import FORMS, Build, DialectPlugin
from tests.fixtures.matrices import sampled_product

KINDS = {"PLAIN": "allocator", "CUSTOM": "custom_allocator"}
MIB = 1 << 20


def build(allocator, *, sizes=True, form="FILLS", **macros):
    macros = {"ALLOCATOR": allocator, **macros}
    return DialectPlugin(Build(Dialect.DEVICE_RFC, sizes, form, macros))


def round_trip(device):
    with device.allocate(1000) as memory:
        out = bytearray(1000)
        device.memcpy_htod(memory, b"x" * 1000)
        device.memcpy_dtoh(out, memory)
    assert out == b"x" * 1000


def test_two_of_them_are_refused_and_half_of_one_is_not_offered():
    for sizes in (True, False):
        plugin = build("BOTH", sizes=sizes)
        assert plugin.refusal().rule == "SE-034"
        assert plugin.calls == ["init", "destroy_platform", "destroy_platform_fns"]

    plugin = build("HALF")
    with plugin.load() as platform:
        assert [found.rule_id for found in platform.warnings] == ["SE-035"]
        round_trip(devices_of(platform)[0])  # by the functions of the executor
    assert not any("allocator" in call for call in plugin.calls)


# What the host calls: the plain one gives regions, which the host cuts; the custom one each piece.
CALLS = {
    "PLAIN": {
        "allocate": 2, "deallocate": 2, "host_memory_allocate": 1, "host_memory_deallocate": 1,
        "create_allocator": 1, "destroy_allocator": 1, "destroy_device": 2,
    },
    "CUSTOM": {
        "allocate_raw": 3, "deallocate_raw": 3, "host_allocate_raw": 1, "host_deallocate_raw": 1,
        "create_custom_allocator": 1, "destroy_custom_allocator": 1, "destroy_device": 2,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "sizes", "kind"), sampled_product(FORMS, (True, False), tuple(KINDS))
)
def test_an_allocator_serves_all_memory(form, sizes, kind):
    """The executor need not have any functions for memory then."""
    plugin = build(kind, sizes=sizes, form=form, MEMORY_SLOTS=0)
    with plugin.load() as platform:
        assert "SE-036" not in [found.rule_id for found in platform.warnings]
        first, second = devices_of(platform)
        for device in (first, first, second):
            round_trip(device)
            gc.collect()
        with first.allocate_host(100) as memory:
            memory.view[:] = b"h" * 100
        assert first.memory_usage().total == 512 * MIB
        if kind == "PLAIN":
            assert first.allocator_stats().num_allocs == 2
            assert first.allocator_stats().bytes_limit == (512 - 255) * MIB
        else:
            assert first.allocator_stats().num_allocs == 12  # the plugin's own figure
    calls = [call for call in plugin.calls if "alloc" in call or call.startswith("destroy_d")]

    assert {call: calls.count(call) for call in CALLS[kind]} == CALLS[kind]
    assert calls[-3:] == [f"destroy_{KINDS[kind]}", "destroy_device", "destroy_device"]
    assert not any(call.startswith("STRANGE") for call in plugin.calls)


def test_unified_memory_is_the_plain_ones_to_offer():
    plugin = build("PLAIN", UNIFIED=1)
    with plugin.load() as platform:
        with devices_of(platform)[0].allocate_unified(10) as memory:
            memory.view[:] = b"0123456789"
        gc.collect()
    assert plugin.calls.count("unified_memory_allocate") == 1
    assert plugin.calls.count("unified_memory_deallocate") == 1

    for kind in KINDS:
        with build(kind).load() as platform:
            device = devices_of(platform)[0]
            with pytest.raises(UnimplementedError, match="no unified_memory_allocate"):
                device.allocate_unified(10)

    with build("PLAIN", UNIFIED=1, ALLOCATOR_LACKS=5).load() as platform:
        device = devices_of(platform)[0]
        with pytest.raises(FailedPreconditionError, match="unified_memory_deallocate is NULL"):
            device.allocate(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_creation_has_the_plugins_code_and_is_tried_again(kind):
    plugin = build(kind, ALLOCATOR_FAILS=7)
    with plugin.load() as platform:
        device = devices_of(platform)[0]
        for _ in range(2):
            with pytest.raises(ModularTFError, match="no memory to speak of") as caught:
                device.allocate(1)
        error = caught.value
        assert (error.code, error.rule) == (Code.PERMISSION_DENIED, "SE-046")
        assert (error.plugin, error.operation) == ("dialect", f"create_{KINDS[kind]}")
        assert device.details is not None

    assert plugin.calls.count(f"create_{KINDS[kind]}") == 2
    assert f"destroy_{KINDS[kind]}" not in plugin.calls


@pytest.mark.parametrize(("kind", "slot"), sampled_product(tuple(KINDS), (0, 1, 2, 3)))
def test_a_missing_function_is_refused_and_the_allocator_destroyed(kind, slot):
    plugin = build(kind, ALLOCATOR_LACKS=slot)
    with plugin.load() as platform:
        with pytest.raises(FailedPreconditionError, match="is NULL") as caught:
            devices_of(platform)[0].allocate(1)
        assert caught.value.rule == "SE-047"
        assert plugin.calls[-1] == f"destroy_{KINDS[kind]}"

    assert plugin.calls.count(f"destroy_{KINDS[kind]}") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_exhaustion_is_out_of_memory_and_passes(kind):
    plugin = build(kind)
    with plugin.load() as platform:
        device = devices_of(platform)[0]
        plugin.exhaust()
        for allocate in (device.allocate, device.allocate_host):
            with pytest.raises(OutOfMemoryError):
                allocate(1000)
        plugin.recover()
        round_trip(device)
