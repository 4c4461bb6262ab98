"""Tables of any generation that cannot be used are refused by name, before anything is called."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.abi.status_codes import Code
from modular_tf.errors import InternalError
from tests.device.dialects.building import LAYOUTS, Build, DialectPlugin

RFC = Dialect.DEVICE_RFC
END = ["destroy_platform", "destroy_platform_fns"]


def slots(struct, dialect):
    return [slot.name for slot in layout(struct, dialect).slots]


@pytest.mark.parametrize(
    ("dialect", "slot"),
    [(dialect, slot) for dialect in LAYOUTS for slot in slots("SP_PlatformFns", dialect)],
)
def test_platform_functions_must_be_code(dialect, slot):
    error = DialectPlugin(Build(dialect, macros={"NOT_CODE": slot})).refusal()

    found = {violation.rule_id: violation.message for violation in error.violations}
    assert f"SP_PlatformFns.{slot} is " in found["SE-029"]


@pytest.mark.parametrize("slot", ["allocate", "synchronize_all_activity", "host_callback"])
@pytest.mark.parametrize("dialect", LAYOUTS)
def test_executor_functions_must_be_code(dialect, slot):
    plugin = DialectPlugin(Build(dialect, macros={"NOT_CODE_EXECUTOR": slot}))
    error = plugin.refusal()

    assert error.rule == "SE-029"
    assert f"SP_StreamExecutor.{slot} is " in error.message
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
