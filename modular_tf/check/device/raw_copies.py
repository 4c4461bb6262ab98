"""Copies and fills of a device by the plugin's own slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.check.native.raw_device import as_pointer

if TYPE_CHECKING:
    from modular_tf.check.device.raw_call import RawDeviceCaller
    from modular_tf.check.device.raw_handles import RawHandle
    from modular_tf.check.device.raw_memory import RawMemory
    from modular_tf.check.device.subject import Answer, Bytes


class RawCopies:
    """The part of `RawDeviceSubject` that moves bytes. [any thread]

    Attributes:
        caller: What calls the slots.
        device: The SP_Device, as slots take it.
    """

    def __init__(self, caller: RawDeviceCaller, device: Any) -> None:
        self.caller = caller
        self.device = device

    def memcpy_htod(
        self, stream: RawHandle, target: RawMemory, source: Bytes, n_bytes: int
    ) -> Answer:
        """Enqueue a copy to the device."""
        base = target.base(n_bytes)
        shown = f"{stream}, {target.address:#x}, {source.address:#x}, {n_bytes}"
        arguments = (stream.pointer, base.pointer, as_pointer(source.address), n_bytes)
        return self._ask("memcpy_htod", shown, *arguments, lent=(base,))

    def memcpy_dtoh(
        self, stream: RawHandle, target: Bytes, source: RawMemory, n_bytes: int
    ) -> Answer:
        """Enqueue a copy from the device."""
        base = source.base(n_bytes)
        shown = f"{stream}, {target.address:#x}, {source.address:#x}, {n_bytes}"
        arguments = (stream.pointer, as_pointer(target.address), base.pointer, n_bytes)
        return self._ask("memcpy_dtoh", shown, *arguments, lent=(base,))

    def memcpy_dtod(
        self, stream: RawHandle, target: RawMemory, source: RawMemory, n_bytes: int
    ) -> Answer:
        """Enqueue a copy on the device."""
        to, of = target.base(n_bytes), source.base(n_bytes)
        shown = f"{stream}, {target.address:#x}, {source.address:#x}, {n_bytes}"
        arguments = (stream.pointer, to.pointer, of.pointer, n_bytes)
        return self._ask("memcpy_dtod", shown, *arguments, lent=(to, of))

    def sync_memcpy_htod(self, target: RawMemory, source: Bytes, n_bytes: int) -> Answer:
        """Copy to the device."""
        base = target.base(n_bytes)
        shown = f"{target.address:#x}, {source.address:#x}, {n_bytes}"
        arguments = (base.pointer, as_pointer(source.address), n_bytes)
        return self._ask("sync_memcpy_htod", shown, *arguments, lent=(base,))

    def sync_memcpy_dtoh(self, target: Bytes, source: RawMemory, n_bytes: int) -> Answer:
        """Copy from the device."""
        base = source.base(n_bytes)
        shown = f"{target.address:#x}, {source.address:#x}, {n_bytes}"
        arguments = (as_pointer(target.address), base.pointer, n_bytes)
        return self._ask("sync_memcpy_dtoh", shown, *arguments, lent=(base,))

    def sync_memcpy_dtod(self, target: RawMemory, source: RawMemory, n_bytes: int) -> Answer:
        """Copy on the device."""
        to, of = target.base(n_bytes), source.base(n_bytes)
        shown = f"{target.address:#x}, {source.address:#x}, {n_bytes}"
        arguments = (to.pointer, of.pointer, n_bytes)
        return self._ask("sync_memcpy_dtod", shown, *arguments, lent=(to, of))

    def mem_zero(self, stream: RawHandle, memory: RawMemory, n_bytes: int) -> Answer:
        """Enqueue setting bytes of device memory to 0."""
        return self._fill("mem_zero", stream, memory, (), n_bytes)

    def memset(self, stream: RawHandle, memory: RawMemory, value: int, n_bytes: int) -> Answer:
        """Enqueue filling with a byte."""
        return self._fill("memset", stream, memory, (value,), n_bytes)

    def memset32(self, stream: RawHandle, memory: RawMemory, value: int, n_bytes: int) -> Answer:
        """Enqueue filling with a 32-bit number."""
        return self._fill("memset32", stream, memory, (value,), n_bytes)

    def _fill(
        self, slot: str, stream: RawHandle, memory: RawMemory, values: tuple[int, ...], size: int
    ) -> Answer:
        base = memory.base(size)
        numbers = ", ".join(map(str, (*values, size)))
        shown = f"{stream}, {memory.address:#x}, {numbers}"
        return self._ask(slot, shown, stream.pointer, base.pointer, *values, size, lent=(base,))

    def _ask(self, slot: str, shown: str, *arguments: Any, lent: Any = ()) -> Answer:
        return self.caller.ask(slot, shown, self.device, *arguments, lent=lent)
