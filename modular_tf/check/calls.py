"""One call of a plugin's slot: announced, made, looked at from all sides, recorded."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.expectation import Unsupported
from modular_tf.check.memory_watch import Breach, raise_breach, raise_harm_to_heap, watched
from modular_tf.check.native.raw_status import RawStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from modular_tf.check.native.guarded_memory import GuardedMemory

_MOST_CALLS = 1000
_MOST_OF_A_VALUE = 120
_MOST_OF_A_MESSAGE = 80


def _discard(_: str) -> None:
    pass


_listener: Callable[[str], None] = _discard
"""Of this process, as the plugin is: a crash or a hang has a name by the last call announced."""


def listen(listener: Callable[[str], None] = _discard) -> None:
    """Announce every call from now on to a function, which must not raise; without one to none."""
    global _listener  # noqa: PLW0603  (of this process)
    _listener = listener


class CallJournal:
    """Announces each call before it is made, and stores what came of it. [any thread]

    Attributes:
        calls: What was called since somebody cleared it, the last at the end; `...` stands for
            the oldest where there are too many.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._of_thread = threading.local()

    def enter(self, call: str) -> None:
        """Announce the next call, C-like and shortened, such as `read(F, 0, 4)`."""
        _listener(call)

    def leave(self, call: str, came: str = "") -> None:
        """Store a call that came back."""
        if len(self.calls) >= _MOST_CALLS:
            self.calls[: _MOST_CALLS // 2] = ["..."]
        told = f"{call} -> {came}" if came else call
        self.calls.append(told)
        self.of_this_thread().append(told)

    def of_this_thread(self) -> deque[str]:
        """Return the last calls that came back to this thread, whatever others call meanwhile."""
        calls: deque[str] = self._of_thread.__dict__.setdefault("calls", deque(maxlen=_MOST_CALLS))
        return calls


def once_each(calls: Iterable[str]) -> list[str]:
    """Return calls with each that follows its equal counted: `stat('F') -> OK (16 times)`."""
    counted = ((call, len([*equal])) for call, equal in groupby(calls))
    return [f"{call} ({times} times)" if times > 1 else call for call, times in counted]


def outcome_of(answer: Answer) -> str:
    """Show what a call with a status returned: `4, OUT_OF_RANGE "past the end"`."""
    name = Code(answer.code).name if answer.code in tuple(Code) else str(answer.code)
    status = f'{name} "{_cut(answer.message, _MOST_OF_A_MESSAGE)}"' if answer.message else name
    if answer.touched is False:
        status = f"{status} (not set)"
    return status if answer.returned is None else f"{answer.returned}, {status}"


def shown(value: object) -> str:
    """Show an argument, shortened."""
    if isinstance(value, bytes):
        return f"{_cut(repr(value), 40)}, n={len(value)}"
    return _cut(repr(value), _MOST_OF_A_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"


class SlotCaller(ABC):
    """Calls slots, and looks at what each call did to memory. [any thread]

    Attributes:
        journal: Records each call.
        is_poisoned: Whether statuses are preset to UNKNOWN.

    Args:
        journal: Records each call.
        table: The C name of the table that calls mean where they name none.
        memory_rule: The id of the rule that misuse of memory breaks.
    """

    def __init__(self, journal: CallJournal, table: str, memory_rule: str) -> None:
        self.journal = journal
        self._table = table
        self._memory_rule = memory_rule
        self.is_poisoned = False

    @contextmanager
    def poisoned(self) -> Iterator[None]:
        """Preset statuses to UNKNOWN within the block, for all threads.

        `Answer.touched` shows in any case whether the plugin sets them.
        """
        before, self.is_poisoned = self.is_poisoned, True
        try:
            yield
        finally:
            self.is_poisoned = before

    def ask(
        self,
        slot: str,
        shown: str,
        *arguments: Any,
        table: str | None = None,
        lent: Sequence[GuardedMemory] = (),
        constant: Sequence[GuardedMemory] = (),
    ) -> Answer:
        """Call a slot that has a status as its last argument, which `arguments` leave out.

        `shown` is what reports show of them, `lent` is memory that the slot may write to, and
        `constant` memory that it may only read. Raises `Unsupported` where the slot is NULL, and
        `Deviation` where it wrote where it must not.
        """
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        with RawStatus(poisoned=self.is_poisoned) as status:
            returned = watched(function, *arguments, status.pointer)
            content = status.read()
        answer = Answer(
            content.code, content.message, returned=returned, touched=content.touched,
            message_is_text=content.is_text, call=call,
        )  # fmt: skip
        self.journal.leave(call, outcome_of(answer))
        self._check_memory(call, slot, lent, constant)
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

        Where it is called `quietly` it is not recorded: it is only a step of another call, or the
        caller records what a pointer leads to.
        """
        function = self.function(slot, table)
        call = f"{slot}({shown})"
        self.journal.enter(call)
        returned = watched(function, *arguments)
        if not quietly:
            self.journal.leave(call, str(returned) if isinstance(returned, int) else "")
        self._check_memory(call, slot, lent, constant)
        return returned

    def function(self, slot: str, table: str | None = None) -> Any:
        """Return a slot's function; raise `Unsupported` where it is NULL."""
        function = self._function(table or self._table, slot)
        if function is None:
            raise Unsupported(f"{table or self._table}.{slot} is NULL")
        return function

    @abstractmethod
    def _function(self, table: str, slot: str) -> Any:
        """Return a slot as a function that releases the GIL, None where it is NULL."""

    @abstractmethod
    def _raise_overrun(self, slot: str, memory: GuardedMemory, where: str) -> None:
        """Raise the finding that a slot wrote beside memory that it was lent."""

    def _check_memory(
        self,
        call: str,
        slot: str,
        lent: Sequence[GuardedMemory],
        constant: Sequence[GuardedMemory],
    ) -> None:
        """Raise `Deviation` where a call did something to memory that is not the plugin's."""
        for memory in (*lent, *constant):
            if (where := memory.breach()) is not None:
                self._raise_overrun(slot, memory, where)
        if not all(memory.is_unchanged for memory in constant):
            message = f"{slot} wrote to an input that is const"
            raise_breach(Breach(self._memory_rule, message, found=call))
        raise_harm_to_heap(call, self._memory_rule)
