"""The layouts hold the numbers that were measured on real headers (the reference sheets)."""

from __future__ import annotations

import re

import pytest

from modular_tf.abi import layouts
from modular_tf.abi.layouts import Dialect, layout
from tests.abi import layout_lock

_DIALECTS = {
    "FS_221": Dialect.FILESYSTEM_V221,
    "FS_222": Dialect.FILESYSTEM_V222,
    "RFC": Dialect.DEVICE_RFC,
    "V205": Dialect.DEVICE_V205,
    "V207": Dialect.DEVICE_V207,
    "V209": Dialect.DEVICE_V209,
    "ALL": None,
}

# Struct, dialect, sizeof, *_STRUCT_SIZE; device-abi §A1 and §A2.
DEVICE_SIZES = """
    SP_Platform                    RFC   40  40
    SP_Platform                    V205  40  34
    SP_Platform                    V207  40  34
    SP_Platform                    V209  40  35
    SP_PlatformFns                 RFC   96  64
    SP_PlatformFns                 V205  88  88
    SP_PlatformFns                 V207  88  88
    SP_PlatformFns                 V209  88  88
    SP_StreamExecutor              RFC  264 264
    SP_StreamExecutor              V205 264 264
    SP_StreamExecutor              V207 288 288
    SP_StreamExecutor              V209 288 288
    SP_Device                      RFC   32  32
    SP_Device                      V209  56  56
    SE_PlatformRegistrationParams  V209  64  64
    SP_DeviceMemoryBase            V209  40  40
    SP_AllocatorStats              V209  96  96
    SP_TimerFns                    V209  24  24
    SE_CreateDeviceParams          V209  32  32
    SE_CreateStreamExecutorParams  V209  24  24
    SE_CreateDeviceFnsParams       V209  24  24
    SP_DeviceFns                   V209  40  40
    SP_Allocator                   RFC   24  17
    SP_AllocatorFns                RFC   80  80
    SP_CustomAllocator             RFC   16  16
    SP_CustomAllocatorFns          RFC   64  64
    SE_CreateAllocatorParams       RFC   32  32
    SE_CreateCustomAllocatorParams RFC   32  32
"""
# A few offsets per interface that any insertion would move.
OFFSETS = """
    TF_FilesystemOps FS_221 init=0 cleanup=8 new_read_only_memory_region_from_file=40
        delete_recursively=80 path_exists=104 translate_name=144 flush_caches=168
        start_transaction=176 decode_transaction_token=216 get_filesystem_configuration=224
        get_filesystem_configuration_keys=256
    TF_FilesystemOps FS_222 flush_caches=168 get_filesystem_configuration=176
        get_filesystem_configuration_keys=208
    TF_FilesystemPluginOps ALL filesystem_ops_size=16 filesystem_ops=24
        random_access_file_ops=48 writable_file_ops=72 read_only_memory_region_ops=96
    SP_PlatformFns RFC create_device=16 create_allocator=64
    SP_PlatformFns V209 get_device_count=16 destroy_timer_fns=80
    SP_StreamExecutor V205 synchronize_all_activity=248 host_callback=256
    SP_StreamExecutor V209 mem_zero=256 memset32=272 host_callback=280
    SE_PlatformRegistrationParams ALL platform=32 destroy_platform_fns=56
    SP_AllocatorStats ALL has_bytes_limit=40 largest_free_block_bytes=88
    SP_AllocatorFns RFC allocate=16 device_memory_usage=72
"""


def _rows(table):
    """Return the words of each row; one that is longer than a line goes on below."""
    return [row.split() for row in re.sub(r"\n {8}", " ", table).strip().splitlines()]


def test_device_struct_sizes():
    for name, dialect, size, struct_size in _rows(DEVICE_SIZES):
        found = layout(name, _DIALECTS[dialect])
        assert (found.size, found.struct_size) == (int(size), int(struct_size)), (name, dialect)


def test_offsets():
    for name, dialect, *fields in _rows(OFFSETS):
        found = layout(name, _DIALECTS[dialect])
        for field in fields:
            wanted, _, offset = field.partition("=")
            assert found.field(wanted).offset == int(offset), (name, dialect, field)


def test_every_layout_is_locked():
    assert layout_lock.LOCK_FILE.read_text() == layout_lock.render()


def test_the_two_filesystem_layouts():
    assert len(layouts.FILESYSTEM_SLOTS) == 33
    assert len(layouts.FILESYSTEM_SLOTS_V222) == 27
    places = [layouts.FILESYSTEM_SLOTS.index(name) for name in layouts.FILESYSTEM_SLOTS_V222]
    assert places == [*range(22), *range(28, 33)]
    missing = set(layouts.FILESYSTEM_SLOTS) - set(layouts.FILESYSTEM_SLOTS_V222)
    assert missing == {name for name in layouts.FILESYSTEM_SLOTS if "transaction" in name}


@pytest.mark.parametrize(
    ("size", "dialect"),
    [
        (16, Dialect.FILESYSTEM_V221),
        (176, Dialect.FILESYSTEM_V221),
        (216, Dialect.FILESYSTEM_V222),
        (224, Dialect.FILESYSTEM_V221),
        (264, Dialect.FILESYSTEM_V221),
        (272, Dialect.FILESYSTEM_V221),
    ],
)
def test_a_filesystem_table_is_told_by_its_size(size, dialect):
    assert dialect is layouts.filesystem_ops_layout(size).dialect


def test_a_field_is_there_when_the_struct_reaches_its_end():
    executor = layout("SP_StreamExecutor", Dialect.DEVICE_V209)

    assert executor.has("host_callback", 288)
    assert not executor.has("host_callback", 287)
    assert not executor.has("no_such_field", 288)


def test_an_unknown_struct_is_refused():
    with pytest.raises(KeyError, match="device-rfc-2020-09-08"):
        layout("SP_Allocator", Dialect.DEVICE_V209)
    with pytest.raises(KeyError, match="no_such_field"):
        layout("SP_TimerFns").field("no_such_field")
