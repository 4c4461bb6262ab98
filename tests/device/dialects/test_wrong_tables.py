"""Tables of any generation that cannot be used are refused by name, before they are used."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.errors import InternalError
from tests.device.dialects.building import LAYOUTS, Build, DialectPlugin

RFC, V205, V207, V209 = LAYOUTS
END = ["destroy_platform", "destroy_platform_fns"]


@pytest.mark.parametrize(
    ("dialect", "macro", "field"),
    [
        (RFC, "NOT_CODE", "SP_PlatformFns.create_allocator"),
        (V205, "NOT_CODE", "SP_PlatformFns.create_device"),
        (RFC, "NOT_CODE_EXECUTOR", "SP_StreamExecutor.allocate"),
        (V207, "NOT_CODE_EXECUTOR", "SP_StreamExecutor.host_callback"),
    ],
)
def test_functions_must_be_code(dialect, macro, field):
    plugin = DialectPlugin(Build(dialect, macros={macro: field.split(".")[1]}))
    error = plugin.refusal()

    found = {violation.rule_id: violation.message for violation in error.violations}
    assert f"{field} is " in found["SE-029"]
    assert plugin.calls[-2:] == END


@pytest.mark.parametrize("slot", ["create_device", "create_stream_executor"])
def test_a_silent_table_with_data_in_it_is_never_asked(slot):
    plugin = DialectPlugin(Build(RFC, sizes=False, macros={"NOT_CODE": slot}))
    error = plugin.refusal()

    assert "SE-029" in {violation.rule_id for violation in error.violations}
    assert plugin.calls == ["init", *END]


@pytest.mark.parametrize("sizes", [True, False])
def test_a_first_call_that_fails_refuses_the_plugin_with_its_own_status(sizes):
    macros = {"FIRST_FAILS": int(Code.PERMISSION_DENIED)}
    plugin = DialectPlugin(Build(RFC, sizes=sizes, macros=macros))
    error = plugin.refusal()

    assert (error.rule, error.code) == ("SE-023", Code.PERMISSION_DENIED)
    assert "no licence for this" in error.message
    assert len(plugin.calls) == 4
    assert plugin.calls[-2:] == END


@pytest.mark.parametrize("dialect", LAYOUTS)
def test_a_count_that_is_none(dialect):
    field = "visible_device_count" if dialect is RFC else "get_device_count"
    with DialectPlugin(Build(dialect, macros={"DEVICES_SAID": 5000})).load() as platform:
        with pytest.raises(InternalError, match=f"{field}: found 5000") as caught:
            platform.device_count()
        assert caught.value.rule == "SE-041"


# -- sizes that belong to different generations; test_dialects.py has all pairs --------------


@pytest.mark.parametrize(
    ("dialect", "sizes"),
    [
        (RFC, {"PLATFORM_SAYS": 35}),
        (V205, {"FNS_SAYS": 64}),
        (V209, {"PLATFORM_SAYS": 41, "FNS_SAYS": 80}),  # TensorFlow 2.4's, which the slots belie
    ],
)
def test_a_platform_and_functions_of_different_headers(dialect, sizes):
    plugin = DialectPlugin(Build(dialect, macros=sizes))
    error = plugin.refusal()
    assert error.rule == "SE-004"
    for size in sizes.values():
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


def test_a_larger_executor_is_accepted_with_a_warning():
    with DialectPlugin(Build(RFC, macros={"EXECUTOR_SAYS": 400})).load() as platform:
        assert platform.tables.dialect is RFC
        assert [found.rule_id for found in platform.warnings] == ["SE-031"]
