"""SP_TimerFns: what reads the timers of a platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from modular_tf.abi.layouts import layout
from modular_tf.errors import ModularTFError
from modular_tf.loading.lent_struct import LentStruct
from modular_tf.native import device_calls
from modular_tf.native.library import is_executable
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from modular_tf.loading.device_tables import DeviceTables


class _Call(Protocol):
    def __call__(
        self, slot: int, platform: int, struct: int, /, *, plugin: str, operation: str
    ) -> None: ...


class TimerFunctions:
    """The timer functions of a plugin, had at the first timer. One thread at a time.

    Attributes:
        nanoseconds: Address of that slot; 0 where the plugin has none, or one that is no code.
    """

    def __init__(self, tables: DeviceTables) -> None:
        """Call create_timer_fns, if the plugin has it.

        Raises:
            ModularTFError: The plugin's own status.
        """
        self._tables = tables
        self._struct = LentStruct(layout("SP_TimerFns"))
        self.nanoseconds = 0
        fns = tables.platform_fns
        self._is_there = fns.has("create_timer_fns") and fns.has("destroy_timer_fns")
        if self._is_there:
            self._call("create_timer_fns", device_calls.create)
            found = self._struct.memory.get("nanoseconds")
            self.nanoseconds = found if is_executable(found) else 0

    def _call(self, operation: str, call: _Call) -> None:
        tables = self._tables
        call(
            tables.platform_fns.value(operation),
            tables.platform.address,
            self._struct.address,
            plugin=tables.plugin,
            operation=operation,
        )

    def destroy(self) -> list[Violation]:
        """Call destroy_timer_fns.

        Returns:
            What went wrong.
        """
        if not self._is_there:
            return []
        self._is_there = False
        try:
            self._call("destroy_timer_fns", device_calls.destroy)
        except ModularTFError as error:
            return [Violation("SE-032", error.message)]
        return []
