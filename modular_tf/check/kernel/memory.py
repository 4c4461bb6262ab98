"""The check of what kernels do to memory that is not their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.breach import raise_harm_at_loading
from modular_tf.check.check import HOST, CheckList
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.kernel.stage import KernelGround

CHECKS = CheckList("kernel", "kernel memory")


@CHECKS.check("KN-103", Level.ROBUST, passes=HOST, seconds=120.0)
def memory_is_left_alone(ground: KernelGround) -> None:
    """What is done to the heap is looked for after each call of a kernel, here and elsewhere."""
    ground.survey.require_calls()
    raise_harm_at_loading("KN-103")
