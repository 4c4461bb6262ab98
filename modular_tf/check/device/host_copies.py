"""Copies and fills of a device through this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.host_answer import HostCaller
    from modular_tf.check.device.host_memory import HostedMemory
    from modular_tf.check.device.subject import Answer, Bytes
    from modular_tf.device.device import Device
    from modular_tf.device.streams.stream import Stream


class HostCopies:
    """The part of `HostDeviceSubject` that moves bytes. [any thread]

    Attributes:
        caller: What calls this package.
        device: This package's object.
    """

    def __init__(self, caller: HostCaller, device: Device) -> None:
        self.caller = caller
        self.device = device

    def memcpy_htod(
        self, stream: Stream, target: HostedMemory, source: Bytes, n_bytes: int
    ) -> Answer:
        """Enqueue a copy to the device."""
        return self._ask(
            f"stream.memcpy_htod({target.address:#x}, {n_bytes} bytes)",
            lambda: stream.memcpy_htod(target.native, source.view, n_bytes),
        )

    def memcpy_dtoh(
        self, stream: Stream, target: Bytes, source: HostedMemory, n_bytes: int
    ) -> Answer:
        """Enqueue a copy from the device."""
        return self._ask(
            f"stream.memcpy_dtoh({source.address:#x}, {n_bytes} bytes)",
            lambda: stream.memcpy_dtoh(target.view, source.native, n_bytes),
        )

    def memcpy_dtod(
        self, stream: Stream, target: HostedMemory, source: HostedMemory, n_bytes: int
    ) -> Answer:
        """Enqueue a copy on the device."""
        return self._ask(
            f"stream.memcpy_dtod({target.address:#x}, {source.address:#x}, {n_bytes} bytes)",
            lambda: stream.memcpy_dtod(target.native, source.native, n_bytes),
        )

    def sync_memcpy_htod(self, target: HostedMemory, source: Bytes, n_bytes: int) -> Answer:
        """Copy to the device."""
        return self._ask(
            f"device.memcpy_htod({target.address:#x}, {n_bytes} bytes)",
            lambda: self.device.memcpy_htod(target.native, source.view, n_bytes),
        )

    def sync_memcpy_dtoh(self, target: Bytes, source: HostedMemory, n_bytes: int) -> Answer:
        """Copy from the device."""
        return self._ask(
            f"device.memcpy_dtoh({source.address:#x}, {n_bytes} bytes)",
            lambda: self.device.memcpy_dtoh(target.view, source.native, n_bytes),
        )

    def sync_memcpy_dtod(self, target: HostedMemory, source: HostedMemory, n_bytes: int) -> Answer:
        """Copy on the device."""
        return self._ask(
            f"device.memcpy_dtod({target.address:#x}, {source.address:#x}, {n_bytes} bytes)",
            lambda: self.device.memcpy_dtod(target.native, source.native, n_bytes),
        )

    def mem_zero(self, stream: Stream, memory: HostedMemory, n_bytes: int) -> Answer:
        """Enqueue setting bytes of device memory to 0."""
        return self._ask(
            f"stream.mem_zero({memory.address:#x}, {n_bytes} bytes)",
            lambda: stream.mem_zero(memory.native, n_bytes),
        )

    def memset(self, stream: Stream, memory: HostedMemory, value: int, n_bytes: int) -> Answer:
        """Enqueue filling with a byte."""
        return self._ask(
            f"stream.memset({memory.address:#x}, {value}, {n_bytes} bytes)",
            lambda: stream.memset(memory.native, value, n_bytes),
        )

    def memset32(self, stream: Stream, memory: HostedMemory, value: int, n_bytes: int) -> Answer:
        """Enqueue filling with a 32-bit number."""
        return self._ask(
            f"stream.memset32({memory.address:#x}, {value}, {n_bytes} bytes)",
            lambda: stream.memset32(memory.native, value, n_bytes),
        )

    def _ask(self, call: str, work: Callable[[], Any]) -> Answer:
        return self.caller.ask(call, work)

    def _do(self, call: str, work: Callable[[], object]) -> None:
        self.caller.do(call, work)
