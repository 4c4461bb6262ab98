"""Calls of a filesystem plugin's slots, and what they do to memory that is not the plugin's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.breach import (
    MEMORY_RULES,
    READ_BUFFER_RULE,
    Breach,
    raise_breach,
    raise_harm_to_heap,
)
from modular_tf.check.heap_watch import Depth
from modular_tf.check.native.raw_filesystem import FILESYSTEM, RawSlots
from modular_tf.check.slot_caller import SlotCaller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.call_journal import CallJournal
    from modular_tf.check.native.guarded_memory import GuardedMemory

_MEMORY_RULE = MEMORY_RULES["filesystem"]


class RawCaller(SlotCaller):
    """Calls slots, of `TF_FilesystemOps` where no other table is named. [any thread]

    Attributes:
        slots: The plugin's functions.

    Args:
        slots: The plugin's functions.
        journal: Records each call.
    """

    def __init__(self, slots: RawSlots, journal: CallJournal) -> None:
        super().__init__(slots, journal, FILESYSTEM)
        self.slots = slots

    def free(self, address: int) -> None:
        """Give a block back by the plugin's own free; nothing for NULL."""
        if address:
            self.journal.enter("plugin_memory_free")
            self.heap.call(self.slots.free, address)
            raise_harm_to_heap(self.heap, "plugin_memory_free", _MEMORY_RULE, Depth.TOLD)

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
                rule_id = READ_BUFFER_RULE if slot == "read" else _MEMORY_RULE
                raise_breach(Breach(rule_id, f"{slot} wrote outside of its output", found=where))
        for memory in constant:
            if not memory.is_unchanged:
                message = f"{slot} wrote to an input that is const"
                raise_breach(Breach(_MEMORY_RULE, message, found=call))
        raise_harm_to_heap(self.heap, call, _MEMORY_RULE)
