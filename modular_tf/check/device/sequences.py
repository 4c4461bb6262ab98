"""Checks of devices by random sequences against a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import HARD, Suite
from modular_tf.check.sequences.stage import GROUP

if TYPE_CHECKING:
    from modular_tf.check.sequences.stage import SequenceGround

suite = Suite("device", GROUP, level=HARD, seconds=600)


@suite.check("SE-300")
def keeps_to_the_model(ground: SequenceGround) -> None:
    """Whatever work is enqueued, memory holds what some order that is allowed leaves there.

    Otherwise: Programs compute with data that is not there yet, or with another's.
    Remedy: Replay the sequence that is named, in a debugger if need be; it is as short as it gets.
    Source: the other rules of devices, taken together
    """
    ground.search()
