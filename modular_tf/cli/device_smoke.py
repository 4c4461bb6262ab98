"""What works on a device: the operations that everything else is made of, each tried once."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import EXPECTED, message_of
from modular_tf.errors import DataLossError, DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.device import Device

_PATIENCE_S = 60.0
_COPIED_BYTES = (0, 1, 4096, 1 << 20)
_FILLED_BYTES = 4096
_FILL = 0xA5


@dataclass(frozen=True)
class Outcome:
    """What came of one operation.

    Attributes:
        check: Its name.
        works: Whether it did.
        elapsed_ms: How long it took.
        message: What went wrong, or is worth knowing; empty for nothing.
    """

    check: str
    works: bool
    elapsed_ms: float
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as `devices --smoke --json` shows it."""
        return {
            "check": self.check,
            "works": self.works,
            "elapsed_ms": round(self.elapsed_ms, 3),
            "message": self.message or None,
        }


def try_device(device: Device) -> list[Outcome]:
    """Try each operation; a failure of one does not keep the others from being tried.

    A device that only describes itself is offered no work, and has no outcomes.
    """
    if getattr(device.factory, "executor", None) is None:
        return []
    return [_try(name, check, device) for name, check in _CHECKS.items()]


def _try(name: str, check: Callable[[Device], str], device: Device) -> Outcome:
    start = time.perf_counter()
    works, message = True, ""
    try:
        message = check(device)
    except EXPECTED as error:
        works, message = False, message_of(error)
    return Outcome(name, works, (time.perf_counter() - start) * 1e3, message)


def _allocate(device: Device) -> str:
    with device.allocate(_FILLED_BYTES):
        return ""


def _copy(device: Device) -> str:
    for size in _COPIED_BYTES:
        data = (bytes(range(256)) * (size // 256 + 1))[:size]
        with device.put(data) as array:
            _compare(array.to_bytes(), data, f"{size} bytes to the device and back")
    return ""


def _memset(device: Device) -> str:
    found = bytearray(_FILLED_BYTES)
    with device.allocate(_FILLED_BYTES) as memory, device.create_stream() as stream:
        stream.memset(memory, _FILL)
        stream.memcpy_dtoh(found, memory)
        stream.block_until_done()
    _compare(bytes(found), bytes([_FILL]) * _FILLED_BYTES, "bytes that were set")
    return ""


def _event(device: Device) -> str:
    with device.create_stream() as stream, stream.record_event() as event:
        event.wait(_PATIENCE_S)
    return ""


def _timer(device: Device) -> str:
    with (
        device.allocate(_FILLED_BYTES) as memory,
        device.create_stream() as stream,
        device.create_timer() as timer,
    ):
        timer.start(stream)
        stream.memset(memory, _FILL)
        timer.stop(stream)
        elapsed_us = timer.nanoseconds / 1e3
        return f"{elapsed_us:.1f} µs by the host's clock" if timer.emulated else ""


def _callback(device: Device) -> str:
    called = threading.Event()
    with device.create_stream() as stream:
        stream.add_callback(called.set)
        if not called.wait(_PATIENCE_S):
            raise DeadlineExceededError(f"the callback was not called within {_PATIENCE_S:.0f} s")
        stream.block_until_done()
    return ""


def _compare(found: bytes, expected: bytes, what: str) -> None:
    if found == expected:
        return
    wrong = next(at for at, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
    raise DataLossError(
        f"{what}: byte {wrong} is {found[wrong]:#04x}, expected {expected[wrong]:#04x}"
    )


_CHECKS: dict[str, Callable[[Device], str]] = {
    "allocate": _allocate,
    "copy": _copy,
    "memset": _memset,
    "event": _event,
    "timer": _timer,
    "callback": _callback,
}
