"""Memory of a device plugin by its own slots: those of the executor, or of the RFC's allocators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.device.subject import Answer
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.native.raw_device import (
    ALLOCATOR,
    CUSTOM_ALLOCATOR,
    EXECUTOR,
    as_address,
    as_pointer,
    view_of,
)

if TYPE_CHECKING:
    from modular_tf.check.device.raw_call import RawDeviceCaller

_BASE_SIZE = 40
_STATS_SIZE = 96
_ALIGNMENT = 64
"""What the RFC's custom allocators are asked for, as TensorFlow asks its allocators."""

_CUSTOM_NAMES = {
    "host_memory_allocate": "host_allocate_raw",
    "host_memory_deallocate": "host_deallocate_raw",
}


@dataclass(frozen=True, slots=True)
class RawMemory:
    """Device memory, or a part of it; see `Memory`."""

    address: int
    size: int
    given_size: int | None = None
    payload: int | None = None

    def part(self, offset: int, n_bytes: int) -> RawMemory:
        """Return a part of the memory."""
        return RawMemory(self.address + offset, n_bytes, None, self.payload)

    def base(self, n_bytes: int) -> GuardedMemory:
        """Return an SP_DeviceMemoryBase of its first bytes."""
        return memory_base(self.address, n_bytes, self.payload or 0)


@dataclass(frozen=True, slots=True)
class RawBlock:
    """Host or unified memory; see `Block`."""

    address: int
    size: int
    memory: RawMemory | None

    @property
    def view(self) -> memoryview:
        """The bytes, writable."""
        return view_of(self.address, self.size)


def memory_base(opaque: int = 0, size: int = 0, payload: int = 0) -> GuardedMemory:
    """Return an SP_DeviceMemoryBase."""
    return GuardedMemory.words(_BASE_SIZE, 0, opaque, size, payload)


class RawAllocation:
    """The functions of memory, of one device. [any thread]

    Args:
        caller: Calls them.
        device: The SP_Device.
        kind: None for the executor's functions, else "allocator" or "custom_allocator".
        allocator: Address of the RFC's allocator, where one serves.
    """

    def __init__(
        self, caller: RawDeviceCaller, device: Any, kind: str | None, allocator: int
    ) -> None:
        tables = {None: EXECUTOR, "allocator": ALLOCATOR, "custom_allocator": CUSTOM_ALLOCATOR}
        self.table = tables[kind]
        self._caller = caller
        self._front = (device,) if kind is None else (device, as_pointer(allocator))
        self._is_custom = kind == "custom_allocator"

    def allocate(self, n_bytes: int) -> tuple[Answer, GuardedMemory]:
        """Allocate; the value is a `RawMemory`. Also returns the struct, None for none."""
        base = memory_base()
        if self._is_custom:
            found = self._call("allocate_raw", str(n_bytes), n_bytes, _ALIGNMENT)
            base = memory_base(as_address(found), n_bytes)
        else:
            shown = f"{n_bytes}, 0"
            self._call("allocate", shown, n_bytes, 0, base.pointer, lent=(base,))
        opaque, size, payload = (base.word(index) for index in (2, 3, 4))
        if not opaque:
            return _none_left("allocate", f"{n_bytes} bytes: opaque is NULL"), base
        return Answer(0, value=RawMemory(opaque, n_bytes, size, payload)), base

    def deallocate(self, address: int) -> None:
        """Give device memory back by its address."""
        if self._is_custom:
            self._call("deallocate_raw", hex(address), as_pointer(address))
            return
        base = memory_base(address)
        self._call("deallocate", f"{{opaque={address:#x}}}", base.pointer, lent=(base,))

    def allocate_block(self, kind: str, n_bytes: int) -> Answer:
        """Allocate "host" or "unified" memory; the value is a `RawBlock`."""
        found = as_address(self._call(f"{kind}_memory_allocate", str(n_bytes), n_bytes))
        if not found:
            return _none_left(f"{kind}_memory_allocate", f"{n_bytes} bytes: NULL")
        memory = RawMemory(found, n_bytes) if kind == "unified" else None
        return Answer(0, value=RawBlock(found, n_bytes, memory))

    def deallocate_block(self, kind: str, address: int) -> None:
        """Give host or unified memory back."""
        self._call(f"{kind}_memory_deallocate", hex(address), as_pointer(address))

    def stats(self) -> tuple[int, GuardedMemory]:
        """Return what get_allocator_stats returned, and the struct."""
        stats = GuardedMemory(_STATS_SIZE, _STATS_SIZE.to_bytes(8, "little"))
        known = self._call("get_allocator_stats", "", stats.pointer, lent=(stats,))
        return int(known), stats

    def usage(self) -> tuple[int, GuardedMemory, GuardedMemory]:
        """Return what device_memory_usage returned, and its two numbers."""
        free, total = GuardedMemory(8), GuardedMemory(8)
        lent = (free, total)
        known = self._call("device_memory_usage", "", free.pointer, total.pointer, lent=lent)
        return int(known), free, total

    def _call(
        self, slot: str, shown: str, *arguments: Any, lent: tuple[GuardedMemory, ...] = ()
    ) -> Any:
        name = _CUSTOM_NAMES.get(slot, slot) if self._is_custom else slot
        arguments = (*self._front, *arguments)
        return self._caller.ask_plainly(name, shown, *arguments, table=self.table, lent=lent)


def _none_left(slot: str, message: str) -> Answer:
    return Answer(int(Code.RESOURCE_EXHAUSTED), message, call=slot)
