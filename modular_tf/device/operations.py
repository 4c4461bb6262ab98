"""What devices need of operations: somebody who makes them, since kernels are above devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping, Sequence

    from modular_tf.device.device import Device

__all__ = ["Operation", "Operations"]


class Operation(Protocol):
    """An operation on a device: a `modular_tf.kernel.op.Op`."""

    name: str

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of a call."""

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute it."""

    def run(self, inputs: Sequence[Any], attrs: Mapping[str, Any], **options: Any) -> Any:
        """Compute it with inputs and attributes apart."""

    def explain(self, *inputs: Any, **named: Any) -> Sequence[Any]:
        """Return each kernel with the reason for it or against it."""


class Operations(Protocol):
    """Who makes operations of a service."""

    def on_device(self, device: Device, name: str, label: str = "") -> Any:
        """Return an `Operation` on a device."""

    def variable(self, device: Device, dtype: Any) -> Any:
        """Return a new variable on a device."""
