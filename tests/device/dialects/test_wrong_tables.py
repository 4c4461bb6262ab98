"""Tables of any generation that cannot be used are refused by name, before anything is called."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.abi.status_codes import Code
from modular_tf.errors import InternalError
from tests.device.dialects.building import LAYOUTS, Build, DialectPlugin

OLDEST = (Dialect.DEVICE_RFC, Dialect.DEVICE_V204)
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
@pytest.mark.parametrize("dialect", OLDEST)
def test_a_silent_table_with_data_in_it_is_never_asked(dialect, slot):
    plugin = DialectPlugin(Build(dialect, sizes=False, macros={"NOT_CODE": slot}))
    error = plugin.refusal()

    assert "SE-029" in {violation.rule_id for violation in error.violations}
    assert plugin.calls == ["init", *END]


@pytest.mark.parametrize("dialect", OLDEST)
class TestTheOneCallFails:
    """A silent plugin of the RFC or TF 2.4 whose first create function fails stays unknown."""

    def test_and_the_plugin_is_refused_with_its_own_status(self, dialect):
        plugin = DialectPlugin(
            Build(dialect, sizes=False, macros={"FIRST_FAILS": int(Code.PERMISSION_DENIED)})
        )
        error = plugin.refusal()

        assert (error.rule, error.code) == ("SE-003", Code.PERMISSION_DENIED)
        assert "no licence for this" in error.message
        assert len(plugin.calls) == 4
        assert plugin.calls[-2:] == END

    def test_with_sizes_the_operation_is_known(self, dialect):
        plugin = DialectPlugin(Build(dialect, macros={"FIRST_FAILS": int(Code.PERMISSION_DENIED)}))

        rule = "SE-023" if dialect is Dialect.DEVICE_RFC else "SE-021"
        assert plugin.refusal().rule == rule


@pytest.mark.parametrize("dialect", LAYOUTS)
def test_a_count_that_is_none(dialect):
    field = "visible_device_count" if dialect in OLDEST else "get_device_count"
    with DialectPlugin(Build(dialect, macros={"DEVICES_SAID": 5000})).load() as platform:
        with pytest.raises(InternalError, match=f"{field}: found 5000") as caught:
            platform.device_count()
        assert caught.value.rule == "SE-041"
