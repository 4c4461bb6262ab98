"""Calls of a device plugin's slots, and what they do to memory that is lent to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.calls import SlotCaller
from modular_tf.check.expectation import Deviation
from modular_tf.check.memory_watch import MEMORY_RULES, raise_harm_to_heap
from modular_tf.check.native.raw_device import EXECUTOR, RawDeviceSlots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.native.guarded_memory import GuardedMemory

OVERRUN = "SE-130"
"""The rule that a plugin writes no further than its output goes."""


class RawDeviceCaller(SlotCaller):
    """Calls slots, of `SP_StreamExecutor` where no other table is named. [any thread]

    Attributes:
        slots: The plugin's functions.

    Args:
        slots: The plugin's functions.
        journal: Records each call.
    """

    def __init__(self, slots: RawDeviceSlots, journal: CallJournal) -> None:
        super().__init__(slots, journal, EXECUTOR)
        self.slots = slots

    def _look_at_memory(
        self,
        call: str,
        slot: str,
        lent: Sequence[GuardedMemory],
        constant: Sequence[GuardedMemory],
    ) -> None:
        for memory in (*lent, *constant):
            where = memory.breach()
            if where is not None:
                raise Deviation(
                    f"{slot} wrote beside its output (rule {OVERRUN})",
                    expected=f"at most {memory.size} bytes are written",
                    found=where,
                )
        raise_harm_to_heap(self.heap, call, MEMORY_RULES["device"])
