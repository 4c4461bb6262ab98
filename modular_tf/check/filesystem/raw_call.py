"""One call of a plugin's slot: announced, made, looked at from all sides, kept."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.check.answers import Answer
from modular_tf.check.breach import (
    MEMORY_RULES,
    READ_BUFFER_RULE,
    Breach,
    raise_breach,
    raise_harm_to_heap,
)
from modular_tf.check.call_journal import CallJournal, outcome_of
from modular_tf.check.expectation import Unsupported
from modular_tf.check.heap_watch import Depth, HeapWatch
from modular_tf.native.raw_filesystem import FILESYSTEM, RawSlots
from modular_tf.native.raw_status import RawStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.native.guarded_memory import GuardedMemory

_MEMORY_RULE = MEMORY_RULES["filesystem"]


class RawCaller:
    """Calls slots. [any thread]

    Attributes:
        slots: The plugin's functions.
        journal: Is told of each call.
        heap: Sees what calls do to the heap.
        poisoned: Whether statuses are preset to UNKNOWN.
    """

    def __init__(self, slots: RawSlots, journal: CallJournal) -> None:
        self.slots = slots
        self.journal = journal
        self.heap = HeapWatch()
        self.poisoned = False

    @contextmanager
    def poison(self) -> Iterator[None]:
        """Preset statuses to UNKNOWN within the block, for all threads."""
        before, self.poisoned = self.poisoned, True
        try:
            yield
        finally:
            self.poisoned = before

    def ask(
        self,
        slot: str,
        shown: str,
        *arguments: Any,
        table: str = FILESYSTEM,
        lent: Sequence[GuardedMemory] = (),
        constant: Sequence[GuardedMemory] = (),
    ) -> Answer:
        """Call a slot that has a status as its last argument.

        Args:
            slot: Its name.
            shown: The arguments as a report shows them.
            arguments: The arguments, without the status.
            table: The C name of its table.
            lent: Memory that it may write to.
            constant: Memory that it may only read.

        Raises:
            Unsupported: The slot is NULL.
            Breach: It wrote where it must not.
        """
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        with RawStatus(poisoned=self.poisoned) as status:
            returned = self.heap.call(function, *arguments, status.pointer)
            content = status.read()
        answer = Answer(
            content.code, content.message, returned=returned, touched=content.touched,
            message_is_text=content.is_text,
        )  # fmt: skip
        self.journal.leave(call, outcome_of(answer))
        self._look_for_breaches(call, slot, lent, constant)
        return answer

    def ask_plainly(
        self,
        slot: str,
        shown: str,
        *arguments: Any,
        table: str = FILESYSTEM,
        constant: Sequence[GuardedMemory] = (),
        quietly: bool = False,
    ) -> Any:
        """Call a slot without a status and return what it returned; see `ask`.

        Where it is called `quietly` it is not kept: it is only a step of another call.
        """
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        returned = self.heap.call(function, *arguments)
        if not quietly:
            self.journal.leave(call)
        self._look_for_breaches(call, slot, (), constant)
        return returned

    def function(self, slot: str, table: str = FILESYSTEM) -> Any:
        """Return a slot's function.

        Raises:
            Unsupported: It is NULL.
        """
        function = self.slots.function(table, slot)
        if function is None:
            raise Unsupported(f"{table}.{slot} is NULL")
        return function

    def free(self, address: int) -> None:
        """Give a block back by the plugin's own free; nothing for NULL."""
        if address:
            self.journal.enter("plugin_memory_free")
            self.heap.call(self.slots.free, address)
            raise_harm_to_heap(self.heap, "plugin_memory_free", _MEMORY_RULE, Depth.TOLD)

    def _look_for_breaches(
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
