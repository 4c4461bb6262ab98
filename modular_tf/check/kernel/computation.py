"""Checks of what the host notices while kernels work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import HOST, Suite
from modular_tf.check.expectation import expect

if TYPE_CHECKING:
    from modular_tf.check.kernel.stage import KernelGround

suite = Suite("kernel", "kernel computation", ways=HOST, seconds=120)


@suite.judge(
    "KN-088",
    "KN-063",
    "KN-076",
    "KN-077",
    "KN-079",
    "KN-080",
    "KN-083",
    "KN-084",
    "KN-085",
    "KN-095",
    "KN-096",
    "KN-100",
    "KN-101",
)
def expect_kept(rule_id: str, ground: KernelGround) -> None:
    """Call each kernel with made-up inputs; that it reports a failure is no fault.

    Raises:
        Deviation: One breaks the rule.
    """
    failures = [one for one in ground.survey.failures if one.breaks(rule_id)]
    first = failures[0] if failures else None
    expect(
        first is None,
        "" if first is None else f"{first.call} breaks the rule",
        expected="a result, or a failure that the kernel reports",
        found="" if first is None else first.error.message,
    )
