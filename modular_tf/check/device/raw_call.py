"""One call of a device plugin's slot: announced, made, looked at, kept."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.check.breach import MEMORY_RULES, raise_harm_to_heap
from modular_tf.check.call_journal import CallJournal, outcome_of
from modular_tf.check.device.subject import Answer
from modular_tf.check.expectation import Deviation, Unsupported
from modular_tf.check.heap_watch import HeapWatch
from modular_tf.native.raw_device import EXECUTOR, RawDeviceSlots
from modular_tf.native.raw_status import RawStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.native.guarded_memory import GuardedMemory

OVERRUN = "SE-130"
"""The rule that a plugin writes no further than its output goes."""


class RawDeviceCaller:
    """Calls slots. [any thread]

    Attributes:
        slots: The plugin's functions.
        journal: Is told of each call.
        heap: Sees what calls do to the heap.
        poisoned: Whether statuses are preset to UNKNOWN.
    """

    def __init__(self, slots: RawDeviceSlots, journal: CallJournal) -> None:
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
        table: str = EXECUTOR,
        lent: Sequence[GuardedMemory] = (),
    ) -> Answer:
        """Call a slot that has a status as its last argument.

        Args:
            slot: Its name.
            shown: The arguments as a report shows them.
            arguments: The arguments, without the status.
            table: The C name of its table.
            lent: Memory that it may write to.

        Raises:
            Unsupported: The slot is NULL.
            Deviation: It wrote beside what was lent.
            Breach: It misused the heap.
        """
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        with RawStatus(poisoned=self.poisoned) as status:
            self.heap.call(function, *arguments, status.pointer)
            found = status.read()
        answer = Answer(
            found.code, found.message, touched=found.touched, message_is_text=found.is_text
        )
        self.journal.leave(call, outcome_of(answer))
        _look_for_overruns(slot, lent)
        raise_harm_to_heap(self.heap, call, MEMORY_RULES["device"])
        return answer

    def ask_plainly(
        self,
        slot: str,
        shown: str,
        *arguments: Any,
        table: str = EXECUTOR,
        lent: Sequence[GuardedMemory] = (),
    ) -> Any:
        """Call a slot without a status and return what it returned; see `ask`."""
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        returned = self.heap.call(function, *arguments)
        self.journal.leave(call, "" if returned is None else str(returned))
        _look_for_overruns(slot, lent)
        raise_harm_to_heap(self.heap, call, MEMORY_RULES["device"])
        return returned

    def function(self, slot: str, table: str = EXECUTOR) -> Any:
        """Return a slot's function.

        Raises:
            Unsupported: It is NULL.
        """
        function = self.slots.function(table, slot)
        if function is None:
            raise Unsupported(f"{table}.{slot} is NULL")
        return function


def _look_for_overruns(slot: str, lent: Sequence[GuardedMemory]) -> None:
    for memory in lent:
        where = memory.breach()
        if where is not None:
            raise Deviation(
                f"{slot} wrote beside its output (rule {OVERRUN})",
                expected=f"at most {memory.size} bytes are written",
                found=where,
            )
