"""A device through this package: what an application sees of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.check.answers import Answer
from modular_tf.check.calls import outcome_of
from modular_tf.check.device.operations import OPERATIONS, DeviceAccess, DeviceFacts
from modular_tf.check.memory_watch import MEMORY_RULES, raise_harm_to_heap
from modular_tf.errors import ModularTFError, error_from_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.device.operations import Operation, Stream, Work
    from modular_tf.device.device import Device
    from modular_tf.loading.device_tables import DeviceTables

_UNIFIED = ("unified_memory_allocate", "unified_memory_deallocate")


class HostDevice(DeviceAccess):
    """One device of a service; see `Operations`. [any thread]"""

    def __init__(
        self,
        device: Device,
        tables: DeviceTables,
        journal: CallJournal,
        close: Callable[[], object],
    ) -> None:
        self.tables = tables
        self.has_unified_memory = tables.supports_unified_memory
        self._close = close
        self._device = device
        self._journal = journal

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called: all but unified memory have a stand-in."""
        return slot not in _UNIFIED or self.has_unified_memory

    def close(self) -> None:
        """Close the service."""
        self._close()

    def facts(self) -> DeviceFacts:
        """Return the device's details."""
        details = self._device.details
        named = (getattr(details, name) for name in DeviceFacts._fields[1:])
        return DeviceFacts(self._device.ordinal, *named)

    def call(self, row: Operation, *arguments: Any) -> Answer:
        """Call what does an operation."""
        given = dict(zip(row.parameters, arguments, strict=True))
        owner, _, member = row.host.partition(".")
        own = self._device if owner == "device" else given.pop(owner)
        passed = [
            each.view if row.parameters[name] == "Bytes" else each for name, each in given.items()
        ]
        shown = ", ".join(_shown(name, each) for name, each in given.items())

        def work() -> Any:
            found = getattr(own, member)
            return found(*passed) if callable(found) else found

        return self._ask(row, f"{row.host}({shown})", work)

    def _get_stream_status(self, stream: Stream) -> Answer:
        """Return the stream's error."""

        def work() -> None:
            if (error := stream.error) is not None:
                raise error

        return self._ask(OPERATIONS["get_stream_status"], "stream.error", work)

    def _host_callback(self, stream: Stream, work: Work) -> Answer:
        """Have a function called that raises where the work fails."""

        def run() -> None:
            if (failure := work()) is not None:
                raise error_from_code(*failure)

        call = "stream.add_callback(work)"
        return self._ask(OPERATIONS["host_callback"], call, lambda: stream.add_callback(run))

    def _ask(self, row: Operation, call: str, work: Callable[[], Any]) -> Answer:
        self._journal.enter(call)
        try:
            answer = Answer(0, value=work())
        except ModularTFError as error:
            if row.result == "nothing":
                raise
            answer = Answer(int(error.code), error.message)
        self._journal.leave(call, outcome_of(answer))
        raise_harm_to_heap(call, MEMORY_RULES["device"])
        return answer


def _shown(name: str, argument: Any) -> str:
    """Show a number, an address of memory, and the name of what has neither."""
    if isinstance(argument, int):
        return str(argument)
    address = getattr(argument, "address", None)
    return name if address is None else f"{address:#x}"
