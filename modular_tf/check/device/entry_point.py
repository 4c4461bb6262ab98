"""Checks of SE_InitPlugin when it is called with just what TensorFlow gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.answers import code_found
from modular_tf.check.check import LIBRARY, NOTE, REGISTERS, ROBUST, WARNING, Suite
from modular_tf.check.expectation import Blocked, Deviation, advise, expect, expect_equal, note

if TYPE_CHECKING:
    from modular_tf.check.device.entry_trial import EntryTrial
    from modular_tf.check.device.library_stage import DeviceLibraryGround

suite = Suite("device", "entry point", level=REGISTERS, ways=LIBRARY, source="device.h")


_PARTS = ("params", "platform", "platform_fns", "device_fns", "stream_executor")


def _expect_no_overrun(trial: EntryTrial, function: str, *parts: str, but: str = "") -> None:
    found = "; ".join(one for one in trial.overruns(*parts) if one not in but)
    expect(
        not found,
        f"{function} wrote beside the structs that it was lent",
        expected="the structs of TensorFlow 2.21 and nothing else are written",
        found=found,
    )


@suite.check("SE-105")
def accepts_tensorflow_sizes(plugin: DeviceLibraryGround) -> None:
    """SE_InitPlugin accepts the struct sizes that TensorFlow 2.21 sets.

    Otherwise: TensorFlow passes the plugin's status on and aborts the whole process.
    Remedy: Compare sizes with >=, and with the *_STRUCT_SIZE macros instead of sizeof.
    Source: TensorFlow 2.21, observed
    """
    answer = plugin.trial.answer
    expect(
        answer.ok,
        "SE_InitPlugin failed when it was called with the sizes of TensorFlow 2.21",
        expected="status OK",
        found=code_found(answer),
    )


@suite.check("SE-101")
def entry_stays_inside(plugin: DeviceLibraryGround) -> None:
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


@suite.check("SE-107", severity=NOTE)
def entry_sets_its_status(plugin: DeviceLibraryGround) -> None:
    """SE_InitPlugin sets its status.

    Otherwise: None where the host presets OK, as TensorFlow does; another host may not.
    Remedy: Call TF_SetStatus(status, TF_OK, "") at the end.
    """
    if plugin.trial.answer.touched is False:
        note("SE_InitPlugin left its status as the host had preset it")


@suite.check("SE-103")
def device_fns_stay_inside(plugin: DeviceLibraryGround) -> None:
    """create_device_fns writes no further than SP_DeviceFns goes.

    Otherwise: TensorFlow has these structs on its stack: what lies behind them is overwritten.
    Remedy: Assign fields one by one, of the header that the host has; never memset by a guess.
    """
    trial = plugin.accepted_trial
    trial.create("device_fns")
    _expect_no_overrun(trial, "create_device_fns", "device_fns")


@suite.check("SE-104")
def executor_stays_inside(plugin: DeviceLibraryGround) -> None:
    """create_stream_executor writes no further than SP_StreamExecutor goes.

    Otherwise: TensorFlow has these structs on its stack: what lies behind them is overwritten.
    Remedy: Assign fields one by one, of the header that the host has; never memset by a guess.
    """
    trial = plugin.accepted_trial
    trial.create("stream_executor")
    _expect_no_overrun(trial, "create_stream_executor", "stream_executor")


@suite.check("SE-102")
def names_outlive_the_call(plugin: DeviceLibraryGround) -> None:
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


@suite.check("SE-108", level=ROBUST)
def destroying_leaves_the_structs(plugin: DeviceLibraryGround) -> None:
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


@suite.check("SE-109", level=ROBUST, severity=WARNING)
def can_be_set_up_again(plugin: DeviceLibraryGround) -> None:
    """A platform that was destroyed can be set up again.

    Otherwise: A service that is closed and opened again in one process loses its devices.
    Remedy: Keep no state from the first SE_InitPlugin that forbids a second one.
    Source: design 5
    """
    plugin.accepted_trial.destroy()
    again = plugin.init_again()
    if not again.answer.ok:
        message = "SE_InitPlugin failed when it was called after the platform was destroyed"
        raise Deviation(message, expected="status OK", found=code_found(again.answer))
    try:
        again.create("device_fns")
        again.create("stream_executor")
    except Blocked as blocked:
        raise Deviation(f"the second platform does not work: {blocked}") from None
    again.destroy()
