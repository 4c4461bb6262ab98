"""Closing executors together, since each may use objects of another."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.device.executor import Executor
    from modular_tf.errors import ModularTFError


def close_executors(executors: Sequence[Executor]) -> list[ModularTFError]:
    """Refuse new work on all executors, wait for all work in flight, then destroy them.

    Work of other executors that uses objects of these is waited for too. A second call, also in
    another thread, returns when everything is done. Returns the errors of work in flight; raises
    FailedPreconditionError if called by a callback that this would wait for, and then nothing has
    happened.
    """
    for executor in executors:
        executor.refuse_in_dependent_callback("close")
    for executor in executors:
        executor.begin_close()
    natives = ffi.new("mtf_executor *[]", [executor.native for executor in executors])
    errors = ffi.new("mtf_error *[]", len(executors))
    lib.mtf_executors_close(natives, errors, len(executors))
    failures = [
        executor.failure(error, "synchronize_all_activity")
        for executor, error in zip(executors, errors, strict=True)
        if error
    ]
    for executor, error in zip(executors, errors, strict=True):
        executor.finish_close()
        if executor.is_host and not error and executor.host_memories:
            _close_memory(executor)
    return failures


def _close_memory(executor: Executor) -> None:
    """Close the device memory of a host device, which stays only where others view it.

    Nothing lists it: arrays are made within each call of a kernel, which should not pay for that.
    What `gc.freeze` was applied to is not found, and keeps its memory until it is dropped.
    """
    from modular_tf.device.arrays.array import DeviceArray  # noqa: PLC0415  (imports executors)
    from modular_tf.device.memory.device_memory import DeviceMemory  # noqa: PLC0415

    users = gc.get_referrers(executor)
    for found in users:
        if isinstance(found, DeviceArray) and found.ends_with_device:
            executor.end_memory(found)
    for found in users:  # not before: of these some are an array's
        if type(found) is DeviceMemory and found.native is not None:
            executor.end_memory(found)
