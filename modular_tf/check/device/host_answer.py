"""From what this package returns or raises to the answer that a check reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.check.calls import outcome_of
from modular_tf.check.device.subject import Answer
from modular_tf.check.expectation import Unsupported
from modular_tf.check.memory_watch import MEMORY_RULES, HeapWatch, raise_harm_to_heap
from modular_tf.errors import ModularTFError, UnimplementedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.calls import CallJournal


class HostCaller:
    """Calls this package. [any thread]

    Args:
        journal: Records each call.
    """

    def __init__(self, journal: CallJournal) -> None:
        self._journal = journal
        self._heap = HeapWatch()

    def ask(self, call: str, work: Callable[[], Any]) -> Answer:
        """Do something and return what came of it.

        Args:
            call: What it is, as a report shows it.
            work: Does it; what it returns is the value.

        Raises:
            Breach: The plugin did harm.
        """
        self._journal.enter(call)
        try:
            answer = Answer(0, value=work(), call=call)
        except ModularTFError as error:
            answer = Answer(int(error.code), error.message, call=call)
        self._journal.leave(call, outcome_of(answer))
        raise_harm_to_heap(self._heap, call, MEMORY_RULES["device"])
        return answer

    def ask_if_offered(self, call: str, work: Callable[[], Any]) -> Answer:
        """As `ask`, of what this package offers only where the plugin has it.

        Raises:
            Unsupported: It has not.
        """

        def tried() -> Any:
            try:
                return work()
            except UnimplementedError as error:
                raise Unsupported(error.message) from None

        return self.ask(call, tried)

    def do(self, call: str, work: Callable[[], object]) -> None:
        """Do something that has no answer.

        Raises:
            Breach: The plugin did harm.
        """
        self._journal.enter(call)
        work()
        self._journal.leave(call)
        raise_harm_to_heap(self._heap, call, MEMORY_RULES["device"])
