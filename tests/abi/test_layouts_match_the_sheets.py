"""The layouts hold the numbers that were measured on real headers (the reference sheets)."""

from __future__ import annotations

import pytest

from modular_tf.abi import layouts
from modular_tf.abi.layouts import Dialect, layout
from tests.abi import layout_lock


def test_every_layout_is_locked():
    assert layout_lock.LOCK_FILE.read_text() == layout_lock.render()


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
