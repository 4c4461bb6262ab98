"""Tables whose sizes tell of different generations are refused by name, before they are used."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect
from tests.device.dialects.building import Build, DialectPlugin

RFC, V205, V207, V209 = (
    Dialect.DEVICE_RFC,
    Dialect.DEVICE_V205,
    Dialect.DEVICE_V207,
    Dialect.DEVICE_V209,
)
END = ["destroy_platform", "destroy_platform_fns"]


@pytest.mark.parametrize(
    ("dialect", "macro", "size"),
    [
        (RFC, "FNS_SAYS", 80),
        (RFC, "PLATFORM_SAYS", 41),
        (RFC, "PLATFORM_SAYS", 35),
        (V205, "FNS_SAYS", 64),
        (V205, "PLATFORM_SAYS", 41),
        (V207, "FNS_SAYS", 96),
        (V209, "FNS_SAYS", 80),
        (V209, "FNS_SAYS", 64),
        (V209, "PLATFORM_SAYS", 48),
    ],
)
def test_a_platform_and_functions_of_different_headers(dialect, macro, size):
    plugin = DialectPlugin(Build(dialect, macros={macro: size}))
    error = plugin.refusal()
    assert error.rule == "SE-004"
    assert str(size) in error.message
    assert plugin.calls == ["init", *END]


@pytest.mark.parametrize(("dialect", "size"), [(RFC, 288), (V209, 264)], ids=str)
def test_an_executor_of_another_header(dialect, size):
    plugin = DialectPlugin(Build(dialect, macros={"EXECUTOR_SAYS": size}))
    error = plugin.refusal()
    assert error.rule == "SE-004"
    assert f"SP_StreamExecutor.struct_size {size}" in error.message
    assert plugin.calls[-2:] == END
    assert plugin.calls.count("create_stream_executor") == 1
    assert plugin.calls.count("destroy_stream_executor") == 1


@pytest.mark.parametrize("says", [(41, 80), (40, 64)], ids=["2.4", "rfc"])
def test_sizes_that_the_slots_belie(says):
    macros = {"PLATFORM_SAYS": says[0], "FNS_SAYS": says[1]}
    plugin = DialectPlugin(Build(V209, macros=macros))
    assert plugin.refusal().rule == "SE-004"
    assert plugin.calls == ["init", *END]


def test_the_executor_decides_between_2_5_and_2_7():
    with DialectPlugin(Build(V205)).load() as old, DialectPlugin(Build(V207)).load() as new:
        assert (old.tables.dialect, new.tables.dialect) == (V205, V207)


def test_a_larger_executor_is_taken_with_a_warning():
    with DialectPlugin(Build(RFC, macros={"EXECUTOR_SAYS": 400})).load() as platform:
        assert platform.tables.dialect is RFC
        assert [found.rule_id for found in platform.warnings] == ["SE-031"]
