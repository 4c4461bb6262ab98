"""The check of what kernels do to memory that is not their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import HOST, ROBUST, Suite
from modular_tf.check.memory_watch import raise_harm_at_loading

if TYPE_CHECKING:
    from modular_tf.check.kernel.stage import KernelGround

suite = Suite("kernel", "kernel memory", level=ROBUST, ways=HOST, seconds=120)


@suite.check("KN-103")
def memory_is_left_alone(ground: KernelGround) -> None:
    """A kernel writes only to memory that is its own, and frees each block once.

    Otherwise: The process ends at some later moment, in code that has nothing to do with it.
    Remedy: Run the calls of the message under AddressSanitizer.
    Source: C
    """
    ground.survey.require_calls()
    raise_harm_at_loading("KN-103")
