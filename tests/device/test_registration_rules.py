"""Rules SE-001 to SE-020: what SE_InitPlugin must leave behind."""

from __future__ import annotations

import pickle

import pytest

from modular_tf.abi.layouts import layout
from modular_tf.abi.status_codes import Code
from modular_tf.device.platform import load_device_platform
from modular_tf.errors import PluginError
from modular_tf.loading.device_dialect import HOSTED
from tests.device.steering import RAISES_INT, RAISES_STANDARD_EXCEPTION

BOTH_DESTROYED = ["destroy_platform", "destroy_platform_fns"]
REQUIRED_FNS = [
    "create_device",
    "destroy_device",
    "create_device_fns",
    "destroy_device_fns",
    "create_stream_executor",
    "destroy_stream_executor",
]
BAD_NAMES = [b"", b"gpu", b"PROBE1", b"NPU-X", b"A/B", b"A:B", b"_GPU", b"Probe", b"GPU\n", b"\xff"]


class LibraryWithoutEntry:
    path = "/nowhere/libempty.so"

    def symbol(self, name):
        return None


def test_entry_point_is_required():
    with pytest.raises(PluginError, match="SE_InitPlugin is not exported") as caught:
        load_device_platform(LibraryWithoutEntry(), plugin_name="empty")
    assert caught.value.rule == "SE-001"
    assert caught.value.code is Code.FAILED_PRECONDITION


def test_own_status_is_passed_on_and_nothing_is_torn_down(steered):
    steered.fail("SE_InitPlugin", Code.PERMISSION_DENIED, "no licence")
    error = steered.refusal()
    assert (error.rule, error.code) == ("SE-002", Code.PERMISSION_DENIED)
    assert "no licence" in error.message
    assert steered.calls == ["init"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [(RAISES_STANDARD_EXCEPTION, "told to fail"), (RAISES_INT, "not a std::exception")],
)
def test_exceptions_become_errors(steered, kind, text):
    steered.fail("SE_InitPlugin", kind)
    error = steered.refusal()
    assert (error.rule, error.code) == ("SE-002", Code.INTERNAL)
    assert text in error.message


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("SE_PlatformRegistrationParams", "SE-005"),
        ("SP_Platform", "SE-011"),
        ("SP_PlatformFns", "SE-017"),
        ("SP_DeviceFns", "SE-022"),
        ("SP_StreamExecutor", "SE-024"),
    ],
)
def test_a_size_of_zero_is_warned_of(steered, table, rule):
    steered.set_field(table, "struct_size", 0)
    assert steered.warned_of() == [rule]


@pytest.mark.parametrize("table", ["SP_Platform", "SP_PlatformFns", "SP_StreamExecutor"])
def test_an_untouched_size_is_no_fault(steered, table):
    steered.leave_size(table)
    assert steered.warned_of() == []


def test_all_sizes_untouched_is_no_fault(steered):
    for table in ("SP_Platform", "SP_PlatformFns", "SP_DeviceFns", "SP_StreamExecutor"):
        steered.leave_size(table)
    with steered.load() as platform:
        assert platform.warnings == ()
        for table in (platform.tables.platform, platform.tables.executor):
            assert table.value("struct_size") == layout(table.layout.name, HOSTED).struct_size
        assert platform.device_count() == 2


def test_sizeof_instead_of_the_macro_is_no_fault(steered):
    steered.set_field("SP_Platform", "struct_size", 40)
    assert steered.warned_of() == []


@pytest.mark.parametrize(
    ("table", "size"), [("SP_Platform", 44), ("SP_StreamExecutor", 320), ("SP_DeviceFns", 48)]
)
def test_a_newer_struct_is_taken_with_a_warning(steered, table, size):
    steered.set_field(table, "struct_size", size)
    assert steered.warned_of() == ["SE-031"]


def test_slots_past_the_announced_size_count_as_null(steered):
    steered.set_field("SP_StreamExecutor", "struct_size", 272)
    error = steered.refusal()
    assert [found.rule_id for found in error.violations] == ["SE-030", "SE-025", "SE-033"]
    assert "host_callback is NULL" in error.message


@pytest.mark.parametrize("part", ["major", "minor", "patch"])
def test_other_versions_are_warned_of(steered, part):
    steered.set_field("SE_PlatformRegistrationParams", f"{part}_version", 7)
    assert steered.warned_of() == ["SE-006"]


@pytest.mark.parametrize(
    ("slot", "rule", "called"),
    [
        ("destroy_platform", "SE-009", ["destroy_platform_fns"]),
        ("destroy_platform_fns", "SE-010", ["destroy_platform"]),
    ],
)
def test_destroy_functions_are_required(steered, slot, rule, called):
    steered.set_field("SE_PlatformRegistrationParams", slot, 0)
    assert steered.refused_for() == [rule]
    assert steered.calls[-3:] == ["destroy_device_fns", "destroy_stream_executor", *called]


@pytest.mark.parametrize(
    ("field", "unset", "malformed"), [("name", "SE-012", "SE-013"), ("type", "SE-014", "SE-015")]
)
class TestNames:
    def test_null(self, steered, field, unset, malformed):
        steered.set_field("SP_Platform", field, 0)
        assert steered.refused_for() == [unset]

    def test_unreadable(self, steered, field, unset, malformed):
        steered.set_field("SP_Platform", field, 0x1000)
        assert steered.refused_for() == [unset]
        assert "not a readable string" in steered.refusal().message

    @pytest.mark.parametrize("text", BAD_NAMES)
    def test_malformed(self, steered, field, unset, malformed, text):
        steered.set_field("SP_Platform", field, steered.text(text))
        assert steered.refused_for() == [malformed]

    @pytest.mark.parametrize("text", [b"A", b"GPU", b"MY_DEVICE", b"X__"])
    def test_accepted(self, steered, field, unset, malformed, text):
        steered.set_field("SP_Platform", field, steered.text(text))
        assert steered.warned_of() == []


@pytest.mark.parametrize(
    "flag", ["supports_unified_memory", "use_bfc_allocator", "force_memory_growth"]
)
def test_flags_other_than_0_and_1_are_warned_of(steered, flag):
    steered.set_field("SP_Platform", flag, 2)
    assert steered.warned_of() == ["SE-016"]


@pytest.mark.parametrize("slot", REQUIRED_FNS)
def test_platform_functions_are_required(steered, slot):
    steered.set_field("SP_PlatformFns", slot, 0)
    error = steered.refusal()
    assert error.rule == "SE-018"
    assert f"SP_PlatformFns.{slot} is NULL" in error.message
    assert steered.calls[-2:] == BOTH_DESTROYED


def test_get_device_count_is_required(steered):
    steered.set_field("SP_PlatformFns", "get_device_count", 0)
    assert steered.refused_for() == ["SE-019"]


def test_timer_functions_are_optional(steered):
    steered.set_field("SP_PlatformFns", "create_timer_fns", 0)
    steered.set_field("SP_PlatformFns", "destroy_timer_fns", 0)
    assert steered.warned_of() == []


@pytest.mark.parametrize("slot", ["create_timer_fns", "destroy_timer_fns"])
def test_half_a_pair_of_timer_functions_is_warned_of(steered, slot):
    steered.set_field("SP_PlatformFns", slot, 0)
    assert steered.warned_of() == ["SE-020"]


@pytest.mark.parametrize("slot", ["get_device_count", *REQUIRED_FNS])
@pytest.mark.parametrize("wild", [8, 0x4141414141414141, 0xFFFFFFFFFFFFFFF8])
def test_slots_must_be_code(in_child, slot, wild):
    output = in_child(
        f"steered.set_field('SP_PlatformFns', {slot!r}, {wild})\nprint(*steered.refused_for())\n"
    )
    assert output.split() == ["SE-029"]


def test_readable_data_is_not_code(in_child):
    output = in_child(
        "steered.set_field('SE_PlatformRegistrationParams', 'destroy_platform', steered.data)\n"
        "print(*steered.refused_for())\n"
        "print(*steered.calls[-1:])\n"
    )
    assert output.split() == ["SE-029", "destroy_platform_fns"]


def test_every_violation_is_collected(steered):
    steered.set_field("SE_PlatformRegistrationParams", "destroy_platform", 0)
    steered.set_field("SE_PlatformRegistrationParams", "minor_version", 9)
    steered.set_field("SP_Platform", "type", steered.text(b"gpu"))
    steered.set_field("SP_PlatformFns", "destroy_device", 0)
    steered.set_field("SP_PlatformFns", "get_device_count", 0)
    steered.set_field("SP_StreamExecutor", "allocate", 0)
    error = steered.refusal()
    assert [found.rule_id for found in error.violations] == [
        "SE-006",
        "SE-009",
        "SE-015",
        "SE-018",
        "SE-019",
        "SE-025",
    ]
    assert error.rule == "SE-009"
    for expected in ("SE-015", "SE-018", "SE-019", "SE-025", "'gpu'", "allocate"):
        assert expected in error.message


def test_the_message_names_plugin_field_rule_and_remedy(steered):
    steered.set_field("SP_Platform", "type", steered.text(b"gpu"))
    error = steered.refusal()
    assert error.plugin == "steered"
    assert error.path == steered.library.path
    for part in (steered.library.path, "SP_Platform.type", "'gpu'", "SE-015", "MY_DEVICE"):
        assert part in error.message


class TestReplacedStructs:
    """device-abi A6: plugins that assign a fresh struct to *params, or point to their own."""

    @pytest.mark.parametrize("table", ["SP_Platform", "SP_PlatformFns"])
    @pytest.mark.parametrize("to", ["null", "own"])
    def test_are_followed_with_a_warning(self, steered, table, to):
        steered.point(table, to)
        with steered.load() as platform:
            assert [found.rule_id for found in platform.warnings] == ["SE-007"]
            assert platform.platform == "STEERED_PLATFORM"
            assert platform.device_count() == 2
        assert steered.calls[-2:] == BOTH_DESTROYED

    @pytest.mark.parametrize("table", ["SP_DeviceFns", "SP_StreamExecutor"])
    def test_are_followed_in_later_tables_too(self, steered, table):
        steered.point(table, "own")
        assert steered.warned_of() == ["SE-007"]

    @pytest.mark.parametrize(
        "table", ["SP_Platform", "SP_PlatformFns", "SP_DeviceFns", "SP_StreamExecutor"]
    )
    def test_wild_pointers_are_refused(self, in_child, table):
        output = in_child(f"steered.point({table!r}, 'nowhere')\nprint(*steered.refused_for())\n")
        assert "SE-008" in output.split()


def test_a_refusal_survives_pickling(steered):
    steered.set_field("SP_PlatformFns", "get_device_count", 0)
    error = steered.refusal()
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.message, copy.rule, copy.code) == (error.message, error.rule, error.code)
    assert copy.violations == error.violations
