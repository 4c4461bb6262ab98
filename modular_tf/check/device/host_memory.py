"""Memory of a device through this package, as checks see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, UnifiedMemory


class HostedMemory:
    """Device memory, or a part of it; see `Memory`.

    Attributes:
        native: This package's object.
    """

    given_size: int | None = None
    payload: int | None = None

    def __init__(self, native: DeviceMemory) -> None:
        self.native = native

    @property
    def address(self) -> int:
        """Its address for the plugin."""
        return self.native.address

    @property
    def size(self) -> int:
        """How many bytes were asked for."""
        return self.native.size

    def part(self, offset: int, n_bytes: int) -> HostedMemory:
        """Return a part of the memory."""
        return HostedMemory(self.native.part(offset, n_bytes))


class HostedBlock:
    """Host or unified memory; see `Block`.

    Attributes:
        native: This package's object.
        memory: Itself as device memory, None where it is not unified.
    """

    def __init__(self, native: HostMemory | UnifiedMemory, memory: HostedMemory | None) -> None:
        self.native = native
        self.memory = memory

    @property
    def address(self) -> int:
        """The address of its first byte."""
        return self.native.address

    @property
    def view(self) -> memoryview:
        """The bytes, writable."""
        return self.native.view
