"""Streams, events and timers of a plugin: what it handed out, which may be NULL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_device import as_pointer, callback
from modular_tf.check.native.raw_status import set_status

if TYPE_CHECKING:
    from modular_tf.check.device.subject import Work

_INTERNAL = 13


@dataclass(frozen=True, slots=True, eq=False)
class RawHandle:
    """An opaque handle.

    Attributes:
        kind: `stream`, `event` or `timer`.
        value: Its number, 0 for NULL.
        pointer: The same as a C pointer.
    """

    kind: str
    value: int
    pointer: Any

    @classmethod
    def of(cls, kind: str, out: GuardedMemory) -> RawHandle:
        """Take it from where create_* left it."""
        value = out.word()
        return cls(kind, value, as_pointer(value))

    def __str__(self) -> str:
        return f"{self.kind} {self.value:#x}"


def handle_out() -> GuardedMemory:
    """Return a zeroed place for a handle."""
    return GuardedMemory(8)


def status_callback(work: Work) -> Any:
    """Return an `SE_StatusCallbackFn` that does some work, and sets the status as that says."""

    def run(status: Any) -> None:
        try:
            failure = work()
        except Exception as error:  # noqa: BLE001  (it must not cross C; the stream has to fail)
            failure = (_INTERNAL, f"a callback raised {error!r}")
        if failure is not None:
            set_status(status, *failure)

    return callback(run)
