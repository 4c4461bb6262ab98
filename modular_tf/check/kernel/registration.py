"""Checks of what a kernel plugin registers, as the loader judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, LOADS, REGISTERS, Suite
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.rules.kernel import KERNEL_INIT_RETURNS, KERNELS_REGISTERED

if TYPE_CHECKING:
    from modular_tf.check.kernel.session import KernelLibrary

suite = Suite("kernel", "kernel registration", ways=LIBRARY)


@suite.judge(
    "KN-007 KN-012 KN-013 KN-014 KN-015 KN-016 KN-017 KN-020 KN-022 KN-023", level=REGISTERS
)
@suite.judge("KN-005 KN-004", level=LOADS)
def _judged(rule_id: str, plugin: KernelLibrary) -> None:
    """Take the loader's word for whether a rule is kept."""
    found = [one.message for one in plugin.violations if one.rule_id == rule_id]
    if found:
        raise Deviation("; ".join(found))
    broken = {one.rule_id for one in plugin.violations}
    if KERNEL_INIT_RETURNS.id in broken:
        raise Blocked("TF_InitKernel does not return", KERNEL_INIT_RETURNS.id)
    if KERNELS_REGISTERED.id in broken:
        raise Unsupported("the plugin registers no kernels")
