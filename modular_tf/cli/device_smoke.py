"""Smoke tests of a device: its basic operations, each tried once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.cli.failures import EXPECTED, message_of
from modular_tf.errors import DataLossError, DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.cli.time_limit import TimeLimit
    from modular_tf.device.device import Device

_COPIED_BYTES = (0, 1, 4096, 1 << 20)
_FILLED_BYTES = 4096
_BYTE = 0xA5
_WORD = 0x01020304
_OWN_SHARE = 0.8
"""How much of the time limit a check may wait by itself: it can tell what it waited for."""
_NOT_COME_BACK = "the device has not come back from an earlier check"


@dataclass(frozen=True)
class Outcome:
    """The result of one operation.

    Attributes:
        check: Its name.
        works: Whether it did; None when it was not tried.
        elapsed_ms: How long it took.
        message: What went wrong, or is worth knowing; empty for nothing.
    """

    check: str
    works: bool | None
    elapsed_ms: float
    message: str = ""

    @property
    def word(self) -> str:
        """The word for `works`: works, failed or not tried."""
        if self.works is None:
            return "not tried"
        return "works" if self.works else "failed"

    @property
    def line(self) -> str:
        """The message in one line, as a table has it."""
        return "; ".join(self.message.splitlines())

    def as_dict(self) -> dict[str, Any]:
        """Return it as `devices --smoke --json` shows it."""
        return {
            "check": self.check,
            "works": self.works,
            "elapsed_ms": round(self.elapsed_ms, 3),
            "message": self.message or None,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Outcome:
        """Return the outcome that `as_dict` has written in a trusted process."""
        return cls(value["check"], value["works"], value["elapsed_ms"], value["message"] or "")


def has_work(device: Device) -> bool:
    """Return whether a device can do work; one that only describes itself cannot."""
    return getattr(device.factory, "executor", None) is not None


def try_checks(
    device: Device, checks: Sequence[str], limit: TimeLimit, enter: Callable[[str], None]
) -> Iterator[Outcome]:
    """Yield the outcome of each operation; after a failure the others are tried too.

    One that does not return does: the device is not touched any more.

    Args:
        device: The device.
        checks: Names of `CHECKS`.
        limit: How long each may take.
        enter: Is told each one before it is tried.
    """
    stuck_before = limit.stuck_calls
    for name in checks:
        if limit.stuck_calls > stuck_before:
            yield not_tried(name, _NOT_COME_BACK)
        else:
            enter(name)
            yield _try(name, _CHECKS[name], device, limit)


def not_tried(name: str, why: str) -> Outcome:
    """Return the outcome of an operation that was not tried."""
    return Outcome(name, works=None, elapsed_ms=0.0, message=why)


def _try(name: str, check: _Check, device: Device, limit: TimeLimit) -> Outcome:
    start = time.perf_counter()
    works, message = True, ""
    try:
        patience = limit.seconds * _OWN_SHARE
        message = limit.call(f"{device.name}: {name}", lambda: check(device, patience))
    except EXPECTED as error:
        works, message = False, message_of(error, device.name)
    return Outcome(name, works, (time.perf_counter() - start) * 1e3, message)


# Each check is given the device and the seconds it may wait; what it returns is worth knowing.


def _allocate(device: Device, _: float) -> str:
    with device.allocate(_FILLED_BYTES):
        return ""


def _copy(device: Device, _: float) -> str:
    """Send bytes to the device and fetch them."""
    for size in _COPIED_BYTES:
        data = _bytes(size)
        with device.put(data) as array:
            _compare(array.to_bytes(), data, f"{size} bytes to the device and back")
    return ""


def _copy_within(device: Device, _: float) -> str:
    """Copy from one place on the device to another."""
    for size in _COPIED_BYTES:
        data = _bytes(size)
        with device.put(data) as array, array.copy_to(device) as copied:
            _compare(copied.to_bytes(), data, f"{size} bytes within the device")
    return ""


def _fill(device: Device, _: float) -> str:
    """Fill with words, the second half with bytes, and the last quarter with zeros."""
    half, quarter = _FILLED_BYTES // 2, _FILLED_BYTES // 4
    found = bytearray(_FILLED_BYTES)
    with device.allocate(_FILLED_BYTES) as memory, device.create_stream() as stream:
        stream.memset32(memory, _WORD)
        stream.memset(memory, _BYTE, offset=half)
        stream.mem_zero(memory, offset=half + quarter)
        stream.memcpy_dtoh(found, memory)
        stream.block_until_done()
    words = _WORD.to_bytes(4, sys.byteorder) * (half // 4)
    _compare(bytes(found), words + bytes([_BYTE]) * quarter + bytes(quarter), "memory filled")
    return ""


def _event(device: Device, patience: float) -> str:
    with device.create_stream() as stream, stream.record_event() as event:
        event.wait(patience)
    return ""


def _timer(device: Device, _: float) -> str:
    with (
        device.allocate(_FILLED_BYTES) as memory,
        device.create_stream() as stream,
        device.create_timer() as timer,
    ):
        timer.start(stream)
        stream.memset(memory, _BYTE)
        timer.stop(stream)
        elapsed_us = timer.nanoseconds / 1e3
        return f"{elapsed_us:.1f} µs by the host's clock" if timer.emulated else ""


def _callback(device: Device, patience: float) -> str:
    called = threading.Event()
    with device.create_stream() as stream:
        stream.add_callback(called.set)
        if not called.wait(patience):
            raise DeadlineExceededError(f"the callback was not called within {patience:g} s")
        stream.block_until_done()
    return ""


def _bytes(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def _compare(found: bytes, expected: bytes, what: str) -> None:
    if found == expected:
        return
    wrong = next(at for at, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
    raise DataLossError(
        f"{what}: byte {wrong} is {found[wrong]:#04x}, expected {expected[wrong]:#04x}"
    )


_Check = Callable[["Device", float], str]
_CHECKS: dict[str, _Check] = {
    "allocate": _allocate,
    "copy": _copy,
    "copy_within": _copy_within,
    "fill": _fill,
    "event": _event,
    "timer": _timer,
    "callback": _callback,
}

CHECKS = tuple(_CHECKS)
"""The names of all operations, in the order in which they are tried."""
