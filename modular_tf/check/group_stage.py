"""Which stage a group of checks is tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.sequences.stage import GROUP, SequenceStage
from modular_tf.check.staging import stage_of

if TYPE_CHECKING:
    from modular_tf.check.target import Stage, Target


def stage_of_group(target: Target, check_id: str) -> Stage:
    """Make the stage of a check and of all that share a process with it.

    Args:
        target: What they work on.
        check_id: One of them.

    Raises:
        Blocked: The target cannot be loaded.
        ModularTFError: Likewise.
    """
    if all_checks()[check_id].group == GROUP:
        return SequenceStage(target)
    return stage_of(target)
