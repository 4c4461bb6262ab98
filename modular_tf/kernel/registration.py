"""What a plugin has registered: one kernel of an operation for a type of device."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.abi.data_types import DataType

__all__ = ["DEFAULT_DEVICE", "DEVICE_PLUGGABLE", "KernelRegistration", "dt_name"]

DEFAULT_DEVICE = "DEFAULT"
"""The device type of kernels that serve devices of any type which have no other."""

DEVICE_PLUGGABLE = "PluggableDevice"
"""The device type of the RFC for kernels that serve the devices of all plugins."""


@dataclass(frozen=True, eq=False)
class KernelRegistration:
    """One kernel that a plugin has registered. Two are equal if their native definition is one.

    Attributes:
        op: The operation that it computes.
        device_type: The type of the devices that it runs on, case-sensitive.
        name: The plugin's name for it, for people; several kernels may share it.
        constraint_pairs: Attributes and the types that they must have, in the plugin's order. All
            must hold; an attribute may come twice.
        host_args: The inputs and outputs that it wants in host memory.
        label: What a call asks for by name; "" for ordinary kernels.
        priority: Of several that match, the highest is used.
        asynchronous: Whether it may end after its function has returned.
        plugin: Whose it is.
        native: Its definition in the native core; compared, never looked into.
    """

    op: str
    device_type: str
    name: str = ""
    constraint_pairs: tuple[tuple[str, DataType], ...] = ()
    host_args: tuple[str, ...] = ()
    label: str = ""
    priority: int = 0
    asynchronous: bool = False
    plugin: str = ""
    native: Any = None

    @property
    def constraints(self) -> Mapping[str, DataType]:
        """The types of the constrained attributes; of one that comes twice, the last."""
        return MappingProxyType(dict(self.constraint_pairs))

    @property
    def key(self) -> tuple[str, str, str]:
        """What a call looks it up by: operation, device type, label."""
        return self.op, self.device_type, self.label

    @property
    def where(self) -> str:
        """Device type, label and constraints, as TensorFlow lists registrations."""
        label = f"; label={self.label!r}" if self.label else ""
        constraints = (f"; {name} in [{dt_name(kind)}]" for name, kind in self.constraint_pairs)
        return f"device={self.device_type!r}{label}{''.join(constraints)}"

    @property
    def who(self) -> str:
        """Name and plugin, for messages."""
        return f"kernel {self.name or self.op!r} of plugin {self.plugin}"

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, KernelRegistration):
            return self is other
        return self.native is not None and bool(self.native == other.native)

    def __hash__(self) -> int:
        return object.__hash__(self) if self.native is None else hash(self.native)


def dt_name(data_type: DataType) -> str:
    """Return a type's name as TensorFlow's messages write it, such as DT_FLOAT."""
    return f"DT_{data_type.name.upper()}"
