"""One status per path, for `paths_exist`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_filesystem import as_address
from modular_tf.check.native.raw_status import RawStatus

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class RawStatuses:
    """An array of statuses; use it as a context manager, which deletes them. [one thread]

    Attributes:
        array: The `TF_Status **`.
    """

    def __init__(self, count: int, *, poisoned: bool) -> None:
        self._stack = ExitStack()
        enter = self._stack.enter_context
        self._statuses = [enter(RawStatus(poisoned=poisoned)) for _ in range(count)]
        self.array = GuardedMemory.words(*(as_address(one.pointer) for one in self._statuses))

    def codes(self) -> list[int]:
        """Return what each holds now."""
        return [status.read().code for status in self._statuses]

    def all_touched(self) -> bool:
        """Tell whether somebody set each of them."""
        return all(status.read().touched for status in self._statuses)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
