"""One call of a plugin's slot: announced, made, looked at from all sides, kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.check.answers import Answer
from modular_tf.check.call_journal import CallJournal, outcome_of
from modular_tf.check.expectation import Unsupported
from modular_tf.check.heap_watch import HeapWatch
from modular_tf.check.native.raw_status import RawStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.native.guarded_memory import GuardedMemory


class Slots(Protocol):
    """The functions of a plugin, by the C name of their table and their own."""

    def function(self, table: str, slot: str) -> Any:
        """Return a slot as a function, None where it is NULL."""


class SlotCaller(ABC):
    """Calls slots; what a call did to memory, a kind of plugin looks for. [any thread]

    Attributes:
        journal: Records each call.
        heap: Sees what calls do to the heap.
        poisoned: Whether statuses are preset to UNKNOWN.

    Args:
        slots: The plugin's functions.
        journal: Records each call.
        table: The C name of the table that calls mean where they name none.
    """

    def __init__(self, slots: Slots, journal: CallJournal, table: str) -> None:
        self._slots = slots
        self.journal = journal
        self._table = table
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
        table: str | None = None,
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
            Deviation: It wrote where it must not.
        """
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        with RawStatus(poisoned=self.poisoned) as status:
            returned = self.heap.call(function, *arguments, status.pointer)
            content = status.read()
        answer = Answer(
            content.code, content.message, returned=returned, touched=content.touched,
            message_is_text=content.is_text, call=call,
        )  # fmt: skip
        self.journal.leave(call, outcome_of(answer))
        self._look_at_memory(call, slot, lent, constant)
        return answer

    def ask_plainly(
        self,
        slot: str,
        shown: str,
        *arguments: Any,
        table: str | None = None,
        lent: Sequence[GuardedMemory] = (),
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
            self.journal.leave(call, _shown(returned))
        self._look_at_memory(call, slot, lent, constant)
        return returned

    def function(self, slot: str, table: str | None = None) -> Any:
        """Return a slot's function.

        Raises:
            Unsupported: It is NULL.
        """
        function = self._slots.function(table or self._table, slot)
        if function is None:
            raise Unsupported(f"{table or self._table}.{slot} is NULL")
        return function

    @abstractmethod
    def _look_at_memory(
        self,
        call: str,
        slot: str,
        lent: Sequence[GuardedMemory],
        constant: Sequence[GuardedMemory],
    ) -> None:
        """Look for what a call did to memory that is not the plugin's.

        Raises:
            Deviation: It did something.
        """


def _shown(returned: Any) -> str:
    """Show a number that came back; where a pointer leads to is the caller's to show."""
    return str(returned) if isinstance(returned, int) else ""
