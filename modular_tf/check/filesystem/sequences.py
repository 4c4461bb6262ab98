"""Checks of filesystems by random sequences against a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import HARD, Suite
from modular_tf.check.sequences.stage import GROUP

if TYPE_CHECKING:
    from modular_tf.check.sequences.stage import SequenceGround

suite = Suite(
    "filesystem",
    GROUP,
    level=HARD,
    traits="directories file-as-directory parents writes",
    seconds=600,
)


@suite.check("FS-320")
def keeps_to_the_model(ground: SequenceGround) -> None:
    """Whatever operations came before, the next one does what a tree of files would do.

    Otherwise: Programs run sequences that no test covers, and lose data or crash in them.
    Remedy: Replay the sequence that is named, in a debugger if need be; it is as short as it gets.
    Source: the other rules of filesystems, taken together
    """
    ground.search()
