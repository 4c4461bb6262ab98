"""The memory of inputs that kernels keep after the call that brought them, such as weights.

Kernels live in the process, not in a service, and so does this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.device.native_object import call_and_own
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.kernel.inputs import KernelInput

__all__ = [
    "drop_released",
    "keep_for_good",
    "keep_retained",
    "keep_retained_by_failed",
    "retained",
]

_MOST_AT_ONCE = 64
retained: dict[int, Any] = {}
"""What keeps each input that a kernel has, by the number of its keeper."""
_for_good: list[Any] = []


def keep_retained(result: Any, inputs: Sequence[KernelInput]) -> None:
    """Keep the inputs that a kernel has handles of; drop those that none has any more. [any thread]

    `result` is that of an execution that is over.
    """
    for index, given in enumerate(inputs):
        number = lib.mtf_kernel_keeper(result, index)
        if number:
            retained[number] = given.kept
    if retained:
        drop_released()


def keep_retained_by_failed(inputs: Sequence[KernelInput]) -> None:
    """Keep what the kernel has that failed last on this thread, before its error is raised."""
    failed = call_and_own(lib.mtf_kernel_take_failed, (), lib.mtf_kernel_result_free)
    if failed:
        keep_retained(failed, inputs)


def keep_for_good(inputs: Sequence[KernelInput]) -> None:
    """Keep inputs that a kernel may use at any time: nothing tells when it is done."""
    _for_good.append([given.kept for given in inputs])


def drop_released() -> None:
    """Drop the inputs that no kernel has any more."""
    numbers = ffi.new("uint64_t[]", _MOST_AT_ONCE)
    while count := lib.mtf_kernel_take_released(numbers, _MOST_AT_ONCE):
        for number in numbers[0:count]:
            retained.pop(number, None)
