"""A plugin of any generation, with and without sizes, in any form, serves like a plugin of today.

The example in the RFC itself writes through NULL and ends any process that loads it: it cannot be
served, and a first contact in a child process has to find it out.
"""

from __future__ import annotations

import threading
from itertools import product

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.device.details import DeviceDetails
from modular_tf.errors import NotFoundError
from modular_tf.loading.device_dialect import HOSTED
from tests.device.conftest import device_of
from tests.device.dialects.building import FORMS, LAYOUTS, Build, DialectPlugin
from tests.fixtures.matrices import sampled

RFC, V207, V209 = Dialect.DEVICE_RFC, Dialect.DEVICE_V207, Dialect.DEVICE_V209
# In a sample, each dialect is built in one form with sizes and in another one without.
BUILDS = sampled(
    [Build(*each) for each in product(LAYOUTS, (True, False), FORMS)],
    [
        Build(dialect, sizes, FORMS[(number + 2 * sizes) % 4])
        for number, dialect in enumerate(LAYOUTS)
        for sizes in (True, False)
    ],
)
FILLS = {"mem_zero", "memset", "memset32"}
FLAGS = ("supports_unified_memory", "use_bfc_allocator", "force_memory_growth")
SIZE_RULES = {"SE-005", "SE-011", "SE-017", "SE-022", "SE-024", "SE-006"}
FORM_RULES = {
    "FILLS": set(),
    "ASSIGNS": set(),
    "SAVED": {"SE-005", "SE-006", "SE-007"},
    "OWN": {"SE-007"},
}


def has(dialect, struct, name):
    return any(field.name == name for field in layout(struct, dialect).fields)


def symbols(table):
    """Return what each slot points to, without the prefix of its table."""
    return {
        slot.name: slot.symbol.split("_", 1)[1] if slot.symbol else None for slot in table.slots()
    }


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_the_dialect_is_recognised_and_its_form_is_warned_of(build):
    # without sizes, nothing distinguishes 2.7 from 2.9 with its one flag off
    silent_2_7 = build.dialect is V207 and not build.sizes
    expected = FORM_RULES[build.form]
    with DialectPlugin(build).load() as platform:
        found = {violation.rule_id for violation in platform.warnings}
        tables = platform.tables

        assert tables.dialect is (V209 if silent_2_7 else build.dialect)
        assert (platform.platform, platform.device_type) == ("DIALECT_PLATFORM", "DIALECT")
        for flag in FLAGS:
            assert getattr(tables, flag) is has(build.dialect, "SP_Platform", flag)
    if build.sizes or build.form in {"FILLS", "SAVED"}:
        assert found == expected
    else:
        assert expected <= found <= expected | SIZE_RULES


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_the_tables_are_in_the_newest_layout_and_as_given(build):
    with DialectPlugin(build).load() as platform:
        tables = platform.tables
    executor, fns = tables.executor, tables.platform_fns
    own = {slot.name for slot in layout("SP_StreamExecutor", build.dialect).slots}
    structs = ["SP_PlatformFns", "SP_DeviceFns", "SP_StreamExecutor"]
    if build.dialect is RFC:
        structs.remove("SP_DeviceFns")

    for table, name in ((executor, "SP_StreamExecutor"), (fns, "SP_PlatformFns")):
        assert table.layout == layout(name, HOSTED)
        assert table.value("struct_size") == table.layout.struct_size
        assert symbols(table) == {
            slot.name: slot.name if has(build.dialect, name, slot.name) else None
            for slot in table.layout.slots
        }
    given = [layout(name, tables.dialect) for name in structs]
    assert [table.layout for table in tables.given] == given
    assert symbols(tables.given_executor) == {name: name for name in own}


@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_each_part_is_created_once_and_torn_down_in_order(build):
    plugin, is_rfc = DialectPlugin(build), build.dialect is RFC
    platform = plugin.load()
    details = (
        DeviceDetails()
        if is_rfc
        else DeviceDetails("Old 1000", "Nobody", "0000:00:02.1", 1, 1_000_001, 1.5)
    )

    assert platform.device_count() == 2
    assert platform.device_details(1).as_dict() == details.as_dict()
    with pytest.raises(NotFoundError, match="has 2 devices"):
        platform.device_details(2)
    platform.device_details(0)
    device = device_of(platform, 1)
    with device.create_timer() as timer, device.create_stream() as stream:
        timer.start(stream)
        timer.stop(stream)
        assert timer.nanoseconds >= 0
    assert platform.tables.visible_device_count == (2 if is_rfc else None)
    platform.close()

    asks_for_count = has(build.dialect, "SP_PlatformFns", "get_device_count")
    assert ("get_device_count" in plugin.calls) is asks_for_count
    assert [call for call in plugin.calls if call.startswith("STRANGE")] == []
    parts = ["stream_executor"] if is_rfc else ["device_fns", "stream_executor"]
    about = ("device", "device_fns", "stream_executor", "timer_fns", "platform", "platform_fns")
    lives = {"init", *(f"{verb}_{part}" for verb in ("create", "destroy") for part in about)}
    assert [call for call in plugin.calls if call in lives] == [
        "init",
        *(f"create_{part}" for part in parts),
        *["create_device"] * 2,
        "create_timer_fns",
        *["destroy_device"] * 2,
        *(f"destroy_{part}" for part in (*parts, "platform", "platform_fns")),
    ]


# -- work is the same in every generation: what a layout lacks, the host does itself ------------

SIZE = 4096


def read(stream, memory):
    host = bytearray(len(memory))
    stream.memcpy_dtoh(host, memory)
    stream.block_until_done()
    return bytes(host)


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize("dialect", LAYOUTS)
def test_a_device_works(dialect, sizes):
    data, called = bytes(range(256)) * (SIZE // 256), threading.Event()
    with DialectPlugin(Build(dialect, sizes)).load() as platform:
        device = device_of(platform, 1)
        stream, other = device.create_stream(), device.create_stream()
        with device.allocate(SIZE) as first, device.allocate(SIZE) as second:
            stream.memcpy_htod(first, data)
            stream.memcpy_dtod(second, first)
            assert read(stream, second) == data
            stream.memset(first, 0x5A)
            assert read(stream, first) == b"\x5a" * SIZE
            stream.memset32(first, 0x01020304, SIZE // 2)
            assert read(stream, first) == b"\4\3\2\1" * (SIZE // 8) + b"\x5a" * (SIZE // 2)
            stream.mem_zero(first, 8, 4)
            assert read(stream, first)[:16] == b"\4\3\2\1" + bytes(8) + b"\4\3\2\1"
        with stream.record_event() as event:
            other.wait_event(event)
            other.wait_for(stream)
            other.block_until_done()
        stream.add_callback(called.set)
        stream.block_until_done()
        assert called.is_set()
        device.synchronize()
        with device.allocate_host(SIZE) as host:
            assert len(host.view) == SIZE
        assert device.memory_usage().total == 1 << 30
        del device, stream, other, event
