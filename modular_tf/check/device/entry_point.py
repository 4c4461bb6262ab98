"""Checks of SE_InitPlugin when it is called with just what TensorFlow gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.answers import code_found
from modular_tf.check.check import LIBRARY, CheckList
from modular_tf.check.expectation import Blocked, Deviation, advise, expect, expect_equal, note
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.entry_trial import EntryTrial
    from modular_tf.check.device.library_stage import DeviceLibraryGround

CHECKS = CheckList("device", "entry point")


_PARTS = ("params", "platform", "platform_fns", "device_fns", "stream_executor")


def _expect_no_overrun(trial: EntryTrial, function: str, *parts: str, but: str = "") -> None:
    found = "; ".join(one for one in trial.overruns(*parts) if one not in but)
    expect(
        not found,
        f"{function} wrote beside the structs that it was lent",
        expected="the structs of TensorFlow 2.21 and nothing else are written",
        found=found,
    )


@CHECKS.check("SE-105", Level.REGISTERS, passes=LIBRARY)
def accepts_tensorflow_sizes(ground: DeviceLibraryGround) -> None:
    """With struct_size as its macros say."""
    answer = ground.trial.answer
    expect(
        answer.ok,
        "SE_InitPlugin failed when it was called with the sizes of TensorFlow 2.21",
        expected="status OK",
        found=code_found(answer),
    )


@CHECKS.check("SE-101", Level.REGISTERS, passes=LIBRARY)
def entry_stays_inside(ground: DeviceLibraryGround) -> None:
    """Guards lie on both sides of each struct; those of older layouts may be larger."""
    trial = ground.trial
    found = "; ".join(trial.overruns("params", "platform", "platform_fns"))
    advise(
        not found or not trial.other_layout,
        f"the layout of {trial.other_layout} has larger structs than TensorFlow 2.21",
        expected="a plugin for TensorFlow 2.21",
        found=found,
    )
    _expect_no_overrun(trial, "SE_InitPlugin", "params", "platform", "platform_fns")


@CHECKS.check("SE-107", Level.REGISTERS, passes=LIBRARY)
def entry_sets_its_status(ground: DeviceLibraryGround) -> None:
    """Tried with a call that succeeds."""
    if ground.trial.answer.touched is False:
        note("SE_InitPlugin left its status as the host had preset it")


@CHECKS.check("SE-103", Level.REGISTERS, passes=LIBRARY)
def device_fns_stay_inside(ground: DeviceLibraryGround) -> None:
    """Tried with canaries after the struct."""
    trial = ground.accepted_trial
    trial.create("device_fns")
    _expect_no_overrun(trial, "create_device_fns", "device_fns")


@CHECKS.check("SE-104", Level.REGISTERS, passes=LIBRARY)
def executor_stays_inside(ground: DeviceLibraryGround) -> None:
    """Tried with canaries after the struct."""
    trial = ground.accepted_trial
    trial.create("stream_executor")
    _expect_no_overrun(trial, "create_stream_executor", "stream_executor")


@CHECKS.check("SE-102", Level.REGISTERS, passes=LIBRARY)
def names_outlive_the_call(ground: DeviceLibraryGround) -> None:
    """Other functions of the plugin have used the stack, and the heap, in the meantime."""
    trial = ground.accepted_trial
    trial.create("device_fns")
    trial.create("stream_executor")
    expect_equal(
        trial.read_names(), (trial.name, trial.device_type), "name and type of the platform"
    )


@CHECKS.check("SE-108", Level.ROBUST, passes=LIBRARY)
def destroying_leaves_the_structs(ground: DeviceLibraryGround) -> None:
    """They lie in the middle of memory that no plugin can free."""
    trial = ground.accepted_trial
    trial.create("device_fns")
    trial.create("stream_executor")
    before = "; ".join(trial.overruns(*_PARTS))
    trial.destroy()
    _expect_no_overrun(trial, "a destroy function", *_PARTS, but=before)


@CHECKS.check("SE-109", Level.ROBUST, passes=LIBRARY)
def can_be_set_up_again(ground: DeviceLibraryGround) -> None:
    """Everything once more, and to its end."""
    ground.accepted_trial.destroy()
    again = ground.init_again()
    if not again.answer.ok:
        message = "SE_InitPlugin failed when it was called after the platform was destroyed"
        raise Deviation(message, expected="status OK", found=code_found(again.answer))
    try:
        again.create("device_fns")
        again.create("stream_executor")
    except Blocked as blocked:
        raise Deviation(f"the second platform does not work: {blocked}") from None
    again.destroy()
