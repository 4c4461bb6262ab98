"""Checks of filesystems by random sequences against a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import CheckList
from modular_tf.check.level import Level
from modular_tf.check.sequences.stage import GROUP

if TYPE_CHECKING:
    from modular_tf.check.sequences.stage import SequenceGround

CHECKS = CheckList("filesystem", GROUP)

_TREE = ("directories", "file-as-directory", "parents", "writes")


@CHECKS.check("FS-320", Level.HARD, traits=_TREE, seconds=600)
def keeps_to_the_model(ground: SequenceGround) -> None:
    """Random sequences of all operations."""
    ground.search()
