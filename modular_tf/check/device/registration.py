"""Checks of what a device plugin registers, as the loader judges it, and of its entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.layouts import Dialect
from modular_tf.check.answers import code_found
from modular_tf.check.check import LIBRARY, LOADS, NOTE, REGISTERS, ROBUST, WARNING, Suite
from modular_tf.check.expectation import (
    Blocked,
    Deviation,
    Unsupported,
    advise,
    expect,
    expect_equal,
    note,
)
from modular_tf.loading.device_loader import RefusedDeviceTables
from modular_tf.loading.device_tables import DeviceTables

if TYPE_CHECKING:
    from modular_tf.check.device.entry_trial import EntryTrial
    from modular_tf.check.device.session import DeviceLibrary

registration = Suite("device", "registration", ways=LIBRARY)

_STEPS = """
    SE-001
    SE-002
    SE-007 SE-008 SE-004
    SE-005 SE-006 SE-009 SE-010
    SE-011 SE-012 SE-013 SE-014 SE-015 SE-016
    SE-017 SE-018 SE-019 SE-020 SE-034 SE-035 SE-029 SE-030 SE-031
    SE-021 SE-023
    SE-022 SE-024 SE-025 SE-026 SE-027 SE-028 SE-033 SE-036
"""
"""In which order the loader looks: an error that stops it leaves what follows unjudged."""
_STEP = {one: number for number, step in enumerate(_STEPS.split("\n")) for one in step.split()}
_LAYOUT_UNKNOWN = ("SE-001", "SE-002", "SE-004", "SE-008")
_NO_FUNCTIONS = ("SE-018", "SE-019", "SE-021", "SE-023", "SE-029", "SE-034")
_STOPPING = frozenset((*_LAYOUT_UNKNOWN, *_NO_FUNCTIONS))
_OF_RFC = {
    **dict.fromkeys(("SE-034", "SE-035"), "the layout has no allocators of its own"),
    "SE-036": "the layout is not the RFC's",
}


@registration.judge(*sorted(_STEP.keys() - {"SE-001", "SE-002"}), level=REGISTERS)
@registration.judge("SE-001", "SE-002", level=LOADS)
def _judged(rule_id: str, plugin: DeviceLibrary) -> None:
    """Take the loader's word for whether a rule is kept."""
    verdict = plugin.verdict
    refused = verdict.violations if isinstance(verdict, RefusedDeviceTables) else ()
    violations = verdict.warnings if isinstance(verdict, DeviceTables) else refused
    found = [one.message for one in violations if one.rule_id == rule_id]
    if found:
        raise Deviation("; ".join(found))
    for violation in refused:
        broken = violation.rule_id
        if broken in _STOPPING and _STEP[broken] < _STEP[rule_id]:
            raise Blocked(f"the plugin is refused before that: {violation.message} ({broken})")
    is_newer = isinstance(verdict, DeviceTables) and verdict.dialect is not Dialect.DEVICE_RFC
    if is_newer and rule_id in _OF_RFC:
        raise Unsupported(_OF_RFC[rule_id])


entry_point = Suite("device", "entry point", level=REGISTERS, ways=LIBRARY, source="device.h")


_PARTS = ("params", "platform", "platform_fns", "device_fns", "stream_executor")


def _expect_no_overrun(trial: EntryTrial, function: str, *parts: str, but: str = "") -> None:
    found = "; ".join(one for one in trial.overruns(*parts) if one not in but)
    expect(
        not found,
        f"{function} wrote beside the structs that it was lent",
        expected="the structs of TensorFlow 2.21 and nothing else are written",
        found=found,
    )


@entry_point.check("SE-105")
def accepts_tensorflow_sizes(plugin: DeviceLibrary) -> None:
    """SE_InitPlugin accepts the struct sizes that TensorFlow 2.21 sets.

    Otherwise: TensorFlow passes the plugin's status on and aborts the whole process.
    Remedy: Compare sizes with >=, and with the *_STRUCT_SIZE macros instead of sizeof.
    Source: TensorFlow 2.21, observed
    """
    answer = plugin.trial.answer
    message = "SE_InitPlugin failed when it was called with the sizes of TensorFlow 2.21"
    expect(answer.ok, message, expected="status OK", found=code_found(answer))


@entry_point.check("SE-101")
def entry_stays_inside(plugin: DeviceLibrary) -> None:
    """SE_InitPlugin writes no further than the structs of TensorFlow 2.21 go.

    Otherwise: TensorFlow has these structs on its stack: what lies behind them is overwritten.
    Remedy: Build against the header of the TensorFlow that is to load it; never memset by a guess.
    Source: TensorFlow 2.21, observed

    The structs of older layouts may be larger.
    """
    trial = plugin.trial
    found = "; ".join(trial.overruns("params", "platform", "platform_fns"))
    advise(
        not found or not trial.other_layout,
        f"the layout of {trial.other_layout} has larger structs than TensorFlow 2.21",
        expected="a plugin for TensorFlow 2.21",
        found=found,
    )
    _expect_no_overrun(trial, "SE_InitPlugin", "params", "platform", "platform_fns")


@entry_point.check("SE-107", severity=NOTE)
def entry_sets_its_status(plugin: DeviceLibrary) -> None:
    """SE_InitPlugin sets its status.

    Otherwise: None where the host presets OK, as TensorFlow does; another host may not.
    Remedy: Call TF_SetStatus(status, TF_OK, "") at the end.
    """
    if plugin.trial.answer.touched is False:
        note("SE_InitPlugin left its status as the host had preset it")


@entry_point.check("SE-103")
def device_fns_stay_inside(plugin: DeviceLibrary) -> None:
    """create_device_fns writes no further than SP_DeviceFns goes.

    Otherwise: TensorFlow has these structs on its stack: what lies behind them is overwritten.
    Remedy: Assign fields one by one, of the header that the host has; never memset by a guess.
    """
    trial = plugin.accepted_trial
    trial.create("device_fns")
    _expect_no_overrun(trial, "create_device_fns", "device_fns")


@entry_point.check("SE-104")
def executor_stays_inside(plugin: DeviceLibrary) -> None:
    """create_stream_executor writes no further than SP_StreamExecutor goes.

    Otherwise: TensorFlow has these structs on its stack: what lies behind them is overwritten.
    Remedy: Assign fields one by one, of the header that the host has; never memset by a guess.
    """
    trial = plugin.accepted_trial
    trial.create("stream_executor")
    _expect_no_overrun(trial, "create_stream_executor", "stream_executor")


@entry_point.check("SE-102")
def names_outlive_the_call(plugin: DeviceLibrary) -> None:
    """Name and type of the platform stay the same once SE_InitPlugin has returned.

    Otherwise: TensorFlow keeps the pointers: it registers the platform by a freed name.
    Remedy: Use string literals, or memory that lives until destroy_platform.
    Source: TensorFlow 2.21, observed

    Other functions of the plugin use the stack and the heap in the meantime.
    """
    trial = plugin.accepted_trial
    trial.create("device_fns")
    trial.create("stream_executor")
    expect_equal(
        trial.read_names(), (trial.name, trial.device_type), "name and type of the platform"
    )


@entry_point.check("SE-108", level=ROBUST)
def destroying_leaves_the_structs(plugin: DeviceLibrary) -> None:
    """The destroy functions write no further than their structs go, and do not free them.

    Otherwise: The memory is the host's: freeing it ends the process, here and in TensorFlow.
    Remedy: Release only what the plugin itself put into the struct.
    """
    trial = plugin.accepted_trial
    trial.create("device_fns")
    trial.create("stream_executor")
    before = "; ".join(trial.overruns(*_PARTS))
    trial.destroy()
    _expect_no_overrun(trial, "a destroy function", *_PARTS, but=before)


@entry_point.check("SE-109", level=ROBUST, severity=WARNING)
def can_be_set_up_again(plugin: DeviceLibrary) -> None:
    """A platform that was destroyed can be set up again.

    Otherwise: A service that is closed and opened again in one process loses its devices.
    Remedy: Keep no state from the first SE_InitPlugin that forbids a second one.
    Source: host recommendation
    """
    plugin.accepted_trial.destroy()
    again = plugin.init()
    if not again.answer.ok:
        message = "SE_InitPlugin failed when it was called after the platform was destroyed"
        raise Deviation(message, expected="status OK", found=code_found(again.answer))
    try:
        again.create("device_fns")
        again.create("stream_executor")
    except Blocked as blocked:
        raise Deviation(f"the second platform does not work: {blocked}") from None
    again.destroy()
