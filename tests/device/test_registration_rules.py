"""Rules SE-001 to SE-033: what SE_InitPlugin and the functions that create tables leave behind."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.device.platform import load_device_platform
from modular_tf.errors import PluginError
from tests.device.steering import RAISES_INT, RAISES_STANDARD_EXCEPTION, TABLES

PARAMS, PLATFORM, FNS, DEVICE_FNS, EXECUTOR, _ = TABLES
FLAGS = ["supports_unified_memory", "use_bfc_allocator", "force_memory_growth"]
GOOD_NAMES = [b"A", b"MY_DEVICE", b"X__"]
BAD_NAMES = [b"", b"gpu", b"PROBE1", b"NPU-X", b"_GPU", b"GPU\n", b"\xff"]

# One row for what a rule says; tests/plugins/matrix.toml has each slot and each struct.
ACCEPTED = [
    (PLATFORM, {"struct_size": 40}, None),  # sizeof, not the macro
    (PLATFORM, {"struct_size": 44}, "SE-031"),
    (DEVICE_FNS, {"struct_size": 48}, "SE-031"),
    *((PARAMS, {f"{part}_version": 7}, "SE-006") for part in ("major", "minor", "patch")),
    *((PLATFORM, {flag: 2}, "SE-016") for flag in FLAGS),
]
REFUSED = [
    (PLATFORM, {"name": 0x1000}, "SE-012"),
    (PLATFORM, {"type": 0x1000}, "SE-014"),
    (FNS, {"create_device": 0}, "SE-018"),
    (FNS, {"get_device_count": 0}, "SE-019"),
    (EXECUTOR, {"allocate": 0}, "SE-025"),
]


def case_id(value):
    return "-".join(value) if isinstance(value, dict) else str(value)


def spoil(steered, table, fields):
    for name, value in fields.items():
        steered.set_field(table, name, value)


@pytest.mark.parametrize(("table", "fields", "rule"), ACCEPTED, ids=case_id)
def test_what_can_be_used_is_accepted_with_a_warning_or_none(steered, table, fields, rule):
    spoil(steered, table, fields)
    assert steered.warned_of() == ([rule] if rule else [])


@pytest.mark.parametrize(("table", "fields", "rule"), REFUSED, ids=case_id)
def test_what_cannot_be_used_is_refused_by_name(steered, table, fields, rule):
    spoil(steered, table, fields)
    error = steered.refusal()
    (field,) = fields

    assert [found.rule_id for found in error.violations] == [rule]
    missing = "not a readable string" if fields[field] else "is NULL"
    assert f"{table}.{field} " in error.message
    assert missing in error.message
    assert steered.calls[-2:] == ["destroy_platform", "destroy_platform_fns"]


@pytest.mark.parametrize(("field", "rule"), [("name", "SE-013"), ("type", "SE-015")])
def test_names_have_capitals_and_underscores(steered, field, rule):
    for text in BAD_NAMES:
        steered.set_field(PLATFORM, field, steered.text(text))
        error = steered.refusal()
        assert error.rule == rule, text
        assert f"Choose a {field} such as MY_" in error.message  # the remedy
    for text in GOOD_NAMES:
        steered.set_field(PLATFORM, field, steered.text(text))
        assert steered.warned_of() == [], text


@pytest.mark.parametrize("missing", ["unified_memory_allocate", "unified_memory_deallocate"])
def test_unified_memory_needs_both_functions(steered, missing):
    spoil(steered, PLATFORM, {"supports_unified_memory": 1})
    spoil(steered, EXECUTOR, {missing: 0})
    assert steered.refused_for() == ["SE-026"]


def test_slots_past_the_announced_size_count_as_null(steered):
    spoil(steered, EXECUTOR, {"struct_size": 272})
    error = steered.refusal()
    assert [found.rule_id for found in error.violations] == ["SE-030", "SE-025", "SE-033"]
    assert "host_callback is NULL" in error.message


@pytest.mark.parametrize(
    ("table", "slot"),
    [(FNS, "get_device_count"), (DEVICE_FNS, "get_gflops"), (EXECUTOR, "host_callback")],
)
def test_slots_must_be_code(steered, table, slot):
    steered.set_field(table, slot, 0x4141414141414141)
    assert steered.refused_for() == ["SE-029"]


# -- functions that fail -----------------------------------------------------------------------


def test_an_entry_point_is_required():
    empty = SimpleNamespace(path="/nowhere/libempty.so", symbol=lambda _name: None)
    with pytest.raises(PluginError, match="SE_InitPlugin is not exported") as caught:
        load_device_platform(empty, plugin_name="empty")
    assert (caught.value.rule, caught.value.code) == ("SE-001", Code.FAILED_PRECONDITION)


def test_a_failing_entry_point_is_an_error_and_nothing_is_torn_down(steered):
    for how, code, text in (
        (Code.PERMISSION_DENIED, Code.PERMISSION_DENIED, "no licence"),
        (RAISES_STANDARD_EXCEPTION, Code.INTERNAL, "no licence"),
        (RAISES_INT, Code.INTERNAL, "not a std::exception"),
    ):
        steered.call("reset")
        steered.fail("SE_InitPlugin", how, "no licence")
        error = steered.refusal()
        assert (error.rule, error.code) == ("SE-002", code)
        assert text in error.message
        assert steered.calls == ["init"]


def test_a_refused_plugin_is_torn_down_in_tensorflows_order_whatever_throws(steered):
    spoil(steered, EXECUTOR, {"allocate": 0})
    steered.fail("destroy_stream_executor", RAISES_STANDARD_EXCEPTION, "still in use")
    error = steered.refusal()
    assert [found.rule_id for found in error.violations] == ["SE-025", "SE-032"]
    assert "still in use" in error.message
    assert steered.calls == [
        "init",
        "create_device_fns",
        "create_stream_executor",
        "destroy_device_fns",
        "destroy_stream_executor",
        "destroy_platform",
        "destroy_platform_fns",
    ]


# -- what a refusal says -----------------------------------------------------------------------


def test_a_refusal_has_every_violation_and_survives_pickling(steered):
    spoil(steered, PARAMS, {"destroy_platform": 0, "minor_version": 9})
    spoil(steered, PLATFORM, {"type": steered.text(b"gpu")})
    spoil(steered, FNS, {"destroy_device": 0, "get_device_count": 0})
    spoil(steered, EXECUTOR, {"allocate": 0})
    error = steered.refusal()
    rules = ["SE-006", "SE-009", "SE-015", "SE-018", "SE-019", "SE-025"]
    assert [found.rule_id for found in error.violations] == rules
    assert error.rule == "SE-009"
    assert (error.plugin, error.path) == ("steered", steered.library.path)
    for expected in (
        *("SE-015", "SE-018", "SE-019", "SE-025", "allocate", steered.library.path),
        *("SP_Platform.type", "'gpu'"),
    ):
        assert expected in error.message

    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.message, copy.rule, copy.code) == (error.message, error.rule, error.code)
    assert copy.violations == error.violations


# -- device-abi A6: plugins that assign a fresh struct to *params, or point to their own --------


@pytest.mark.parametrize("table", [DEVICE_FNS, EXECUTOR])
def test_a_replaced_struct_is_followed_with_a_warning(steered, table):
    steered.point(table, "own")
    with steered.load() as platform:
        assert [found.rule_id for found in platform.warnings] == ["SE-007"]
        assert platform.device_count() == 2
