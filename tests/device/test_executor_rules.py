"""Rules SE-021 to SE-032: device functions, stream executor, and taking a refused plugin down."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import layout
from modular_tf.abi.status_codes import Code
from modular_tf.errors import InternalError
from modular_tf.loading.device_dialect import HOSTED
from tests.device.steering import RAISES_STANDARD_EXCEPTION

OPTIONAL = {
    "unified_memory_allocate",
    "unified_memory_deallocate",
    "create_timer",
    "destroy_timer",
    "start_timer",
    "stop_timer",
    "memcpy_dtod",
    "sync_memcpy_dtod",
    "block_host_until_done",
}
FILLS = {"mem_zero", "memset", "memset32"}  # TensorFlow's host needs them, this one does not
SLOTS = [slot.name for slot in layout("SP_StreamExecutor", HOSTED).slots]
REQUIRED = [name for name in SLOTS if name not in OPTIONAL | FILLS]


def test_the_required_slots_are_tensorflows():
    numbers = [index for index, name in enumerate(SLOTS) if name in {*REQUIRED, *FILLS}]
    # device-abi B2, by slot number
    assert numbers == [*range(4), *range(6, 17), 21, 22, 24, 25, 27, *range(29, 34)]


@pytest.mark.parametrize("slot", REQUIRED)
def test_a_required_slot(steered, slot):
    steered.set_field("SP_StreamExecutor", slot, 0)
    error = steered.refusal()
    assert [found.rule_id for found in error.violations] == ["SE-025"]
    assert f"SP_StreamExecutor.{slot} is NULL" in error.message


def test_an_empty_executor_breaks_the_rule_once_per_slot(steered):
    for slot in SLOTS:
        steered.set_field("SP_StreamExecutor", slot, 0)
    assert steered.refused_for() == ["SE-025"] * len(REQUIRED)


@pytest.mark.parametrize("missing", sorted(FILLS))
def test_a_fill_that_the_host_can_do_is_warned_of(steered, missing):
    steered.set_field("SP_StreamExecutor", missing, 0)
    assert steered.warned_of() == ["SE-033"]


@pytest.mark.parametrize("missing", [SLOTS[4], SLOTS[5]])
def test_unified_memory_needs_both_functions(steered, missing):
    steered.set_field("SP_Platform", "supports_unified_memory", 1)
    steered.set_field("SP_StreamExecutor", missing, 0)
    assert steered.refused_for() == ["SE-026"]


@pytest.mark.parametrize("missing", [SLOTS[4], SLOTS[5]])
def test_without_unified_memory_they_are_optional(steered, missing):
    steered.set_field("SP_StreamExecutor", missing, 0)
    assert steered.warned_of() == []


@pytest.mark.parametrize("missing", ["memcpy_dtod", "sync_memcpy_dtod"])
def test_copies_that_tensorflow_calls_unchecked_are_warned_of(steered, missing):
    steered.set_field("SP_StreamExecutor", missing, 0)
    assert steered.warned_of() == ["SE-027"]


def test_block_host_until_done_is_optional(steered):
    steered.set_field("SP_StreamExecutor", "block_host_until_done", 0)
    assert steered.warned_of() == []


def test_timers_are_optional_together(steered):
    for slot in ("create_timer", "destroy_timer", "start_timer", "stop_timer"):
        steered.set_field("SP_StreamExecutor", slot, 0)
    assert steered.warned_of() == []


@pytest.mark.parametrize("slot", ["create_timer", "destroy_timer", "start_timer", "stop_timer"])
def test_a_part_of_the_timers_is_warned_of(steered, slot):
    steered.set_field("SP_StreamExecutor", slot, 0)
    assert steered.warned_of() == ["SE-028"]


@pytest.mark.parametrize("slot", ["allocate", "memcpy_dtod", "host_callback"])
def test_slots_must_be_code(steered, slot):
    steered.set_field("SP_StreamExecutor", slot, steered.data)
    assert steered.refused_for() == ["SE-029"]


@pytest.mark.parametrize("slot", ["get_numa_node", "get_memory_bandwidth", "get_gflops"])
def test_device_functions_are_optional(steered, slot):
    steered.set_field("SP_DeviceFns", slot, 0)
    with steered.load() as platform:
        details = platform.device_details(0)
    assert platform.warnings == ()
    assert getattr(details, slot.removeprefix("get_")) is None


@pytest.mark.parametrize("slot", ["get_numa_node", "get_memory_bandwidth", "get_gflops"])
def test_device_functions_must_be_code(steered, slot):
    steered.set_field("SP_DeviceFns", slot, steered.data)
    assert steered.refused_for() == ["SE-029"]


@pytest.mark.parametrize(
    ("operation", "rule", "torn_down"),
    [
        ("create_device_fns", "SE-021", "destroy_stream_executor"),
        ("create_stream_executor", "SE-023", "destroy_device_fns"),
    ],
)
def test_a_failing_create_function(steered, operation, rule, torn_down):
    steered.fail(operation, Code.RESOURCE_EXHAUSTED, "out of handles")
    error = steered.refusal()
    assert (error.rule, error.code) == (rule, Code.RESOURCE_EXHAUSTED)
    assert "out of handles" in error.message
    # what was created is destroyed, what failed is not
    assert steered.calls[-3:] == [torn_down, "destroy_platform", "destroy_platform_fns"]


def test_a_refused_plugin_is_torn_down_in_tensorflows_order(steered):
    steered.set_field("SP_StreamExecutor", "allocate", 0)
    steered.refusal()
    assert steered.calls == [
        "init",
        "create_device_fns",
        "create_stream_executor",
        "destroy_device_fns",
        "destroy_stream_executor",
        "destroy_platform",
        "destroy_platform_fns",
    ]


def test_a_throwing_destroy_of_a_refused_plugin_is_listed(steered):
    steered.set_field("SP_StreamExecutor", "allocate", 0)
    steered.fail("destroy_stream_executor", RAISES_STANDARD_EXCEPTION, "still in use")
    error = steered.refusal()
    assert [found.rule_id for found in error.violations] == ["SE-025", "SE-032"]
    assert "still in use" in error.message
    assert steered.calls[-1] == "destroy_platform_fns"


def test_a_throwing_destroy_at_close_is_raised_after_all_have_run(steered):
    steered.fail("destroy_stream_executor", RAISES_STANDARD_EXCEPTION, "still in use")
    platform = steered.load()
    with pytest.raises(InternalError, match="still in use") as caught:
        platform.close()
    assert caught.value.rule == "SE-032"
    assert steered.calls[-1] == "destroy_platform_fns"
    platform.close()
