"""The end of executors: together, since each may work with what belongs to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.device.executor import Executor
    from modular_tf.errors import ModularTFError


def close_executors(executors: Sequence[Executor]) -> list[ModularTFError]:
    """Refuse new work on all, wait for what runs and is in flight on all, then destroy all.

    Work of other executors that uses what belongs to these is waited for too. May be called again,
    also beside a call that has not returned: it returns when all has been done.

    Returns:
        What went wrong with work in flight.

    Raises:
        FailedPreconditionError: Called by a callback that this would wait for; nothing has
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
    for executor in executors:
        executor.finish_close()
    return failures
