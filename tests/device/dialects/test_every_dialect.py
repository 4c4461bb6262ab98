"""A plugin of any generation, with and without sizes, in any form, serves like a plugin of today.

The example in the RFC itself writes through NULL and ends any process that loads it: it cannot be
served, and a first contact in a child process has to find it out.
"""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.device.details import DeviceDetails
from modular_tf.errors import NotFoundError
from modular_tf.loading.device_dialect import HOSTED
from tests.device.conftest import device_of
from tests.device.dialects.building import FORMS, LAYOUTS, Build, DialectPlugin

RFC, V207, V209 = (
    Dialect.DEVICE_RFC,
    Dialect.DEVICE_V207,
    Dialect.DEVICE_V209,
)
NEWEST = HOSTED
BUILDS = [
    Build(dialect, sizes, form) for dialect in LAYOUTS for sizes in (True, False) for form in FORMS
]
FILLS = {"mem_zero", "memset", "memset32"}
END = ["destroy_platform", "destroy_platform_fns"]


@pytest.fixture(params=BUILDS, ids=str)
def plugin(request):
    return DialectPlugin(request.param)


@pytest.fixture
def platform(plugin):
    with plugin.load() as loaded:
        yield loaded


def has(dialect, struct, name):
    return any(field.name == name for field in layout(struct, dialect).fields)


def without_prefix(table):
    return {
        slot.name: slot.symbol.split("_", 1)[1] if slot.symbol else None for slot in table.slots()
    }


def test_the_dialect_is_told(plugin, platform):
    # without sizes, nothing distinguishes 2.7 from 2.9 with its one flag off
    silent_2_7 = plugin.build.dialect is V207 and not plugin.build.sizes

    assert platform.tables.dialect is (V209 if silent_2_7 else plugin.build.dialect)


def test_warnings_tell_of_the_form_only(plugin, platform):
    size_rules = {"SE-005", "SE-011", "SE-017", "SE-022", "SE-024", "SE-006"}
    expected = {
        "FILLS": set(),
        "ASSIGNS": set(),
        "SAVED": {"SE-005", "SE-006", "SE-007"},
        "OWN": {"SE-007"},
    }[plugin.build.form]
    found = {violation.rule_id for violation in platform.warnings}

    if plugin.build.sizes or plugin.build.form in {"FILLS", "SAVED"}:
        assert found == expected
    else:
        assert expected <= found <= expected | size_rules


def test_name_type_and_count(platform):
    assert (platform.platform, platform.device_type) == ("DIALECT_PLATFORM", "DIALECT")
    assert platform.device_count() == 2


def test_the_count_is_asked_for_where_a_function_tells_it(plugin, platform):
    platform.device_count()
    asked = has(plugin.build.dialect, "SP_PlatformFns", "get_device_count")

    assert ("get_device_count" in plugin.calls) is asked
    assert platform.tables.visible_device_count == (None if asked else 2)


def test_flags_of_the_dialect_are_read_and_others_are_false(plugin, platform):
    dialect, tables = plugin.build.dialect, platform.tables

    for flag in ("supports_unified_memory", "use_bfc_allocator", "force_memory_growth"):
        assert getattr(tables, flag) is has(dialect, "SP_Platform", flag)


def test_details(plugin, platform):
    expected = (
        DeviceDetails()
        if plugin.build.dialect is RFC
        else DeviceDetails("Old 1000", "Nobody", "0000:00:02.1", 1, 1_000_001, 1.5)
    )

    assert platform.device_details(1).as_dict() == expected.as_dict()


def test_no_device_outside_the_count(platform):
    with pytest.raises(NotFoundError, match="has 2 devices"):
        platform.device_details(2)


def test_the_executor_is_in_the_newest_layout(plugin, platform):
    executor = platform.tables.executor
    own = {slot.name for slot in layout("SP_StreamExecutor", plugin.build.dialect).slots}

    assert executor.layout == layout("SP_StreamExecutor", NEWEST)
    assert executor.value("struct_size") == executor.layout.struct_size
    assert without_prefix(executor) == {
        slot.name: slot.name if slot.name in own else None for slot in executor.layout.slots
    }


def test_the_platform_functions_are_in_the_newest_layout(plugin, platform):
    fns = platform.tables.platform_fns

    assert fns.layout == layout("SP_PlatformFns", NEWEST)
    assert fns.value("struct_size") == fns.layout.struct_size
    assert without_prefix(fns) == {
        slot.name: slot.name if has(plugin.build.dialect, "SP_PlatformFns", slot.name) else None
        for slot in fns.layout.slots
    }


def test_the_tables_as_given_are_kept_for_people(plugin, platform):
    tables, dialect = platform.tables, platform.tables.dialect
    structs = ["SP_PlatformFns", "SP_DeviceFns", "SP_StreamExecutor"]
    if dialect is RFC:
        structs.remove("SP_DeviceFns")

    assert [table.layout for table in tables.given] == [layout(name, dialect) for name in structs]
    assert without_prefix(tables.given_executor) == {
        slot.name: slot.name for slot in layout("SP_StreamExecutor", plugin.build.dialect).slots
    }


def test_each_part_is_created_once_and_torn_down_in_order(plugin):
    platform = plugin.load()
    parts = (
        ["stream_executor"] if plugin.build.dialect is RFC else ["device_fns", "stream_executor"]
    )
    platform.device_details(1)
    platform.device_details(0)
    platform.close()

    calls = [call for call in plugin.calls if call != "get_device_count"]
    assert calls == [
        "init",
        *(f"create_{part}" for part in parts),
        *["create_device"] * 2,
        *["destroy_device"] * 2,
        *(f"destroy_{part}" for part in parts),
        *END,
    ]


def test_what_the_host_lends_has_its_size_and_nothing_in_it(plugin):
    with plugin.load() as platform:
        device = device_of(platform, 1)
        with device.create_timer() as timer, device.create_stream() as stream:
            timer.start(stream)
            timer.stop(stream)
            assert timer.nanoseconds >= 0

    assert "create_timer_fns" in plugin.calls
    assert not [call for call in plugin.calls if call.startswith("STRANGE")]


@pytest.mark.parametrize("form", FORMS)
def test_a_silent_one_is_told_by_its_slots_and_nothing_is_created_twice(form):
    plugin = DialectPlugin(Build(RFC, sizes=False, form=form, macros={"ALLOCATOR": "PLAIN"}))
    with plugin.load() as platform:
        assert platform.tables.dialect is RFC
    assert plugin.calls[:2] == ["init", "create_stream_executor"]
    assert plugin.calls.count("create_stream_executor") == 1


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("dialect", LAYOUTS)
def test_timers_are_optional(dialect, sizes):
    with DialectPlugin(Build(dialect, sizes, macros={"TIMERS": 0})).load() as platform:
        assert platform.warnings == ()
        assert platform.tables.dialect in {dialect, V209}
        assert platform.device_count() == 2


@pytest.mark.parametrize("dialect", [d for d in LAYOUTS if has(d, "SP_StreamExecutor", "memset")])
def test_functions_that_fill_are_optional(dialect):
    with DialectPlugin(Build(dialect, macros={"FILL_SLOTS": 0})).load() as platform:
        assert [found.rule_id for found in platform.warnings] == ["SE-033"] * 3
        assert not any(platform.tables.executor.has(slot) for slot in FILLS)
        assert platform.tables.executor.has("host_callback")
