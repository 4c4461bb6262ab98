"""What devices need of operations: somebody who makes them, since kernels are above devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from modular_tf.errors import UnimplementedError

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping, Sequence

    from modular_tf.device.arrays.array import DeviceArray
    from modular_tf.device.device import Device

__all__ = ["Operation", "Operations", "Variable", "WithOperations"]


class Operation(Protocol):
    """An operation on a device: a `modular_tf.Op`."""

    name: str

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of a call."""

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute the operation; see `modular_tf.Op`."""

    def run(self, inputs: Sequence[Any], attrs: Mapping[str, Any], **options: Any) -> Any:
        """Compute it with inputs and attributes apart."""

    def explain(self, *inputs: Any, **named: Any) -> Sequence[Any]:
        """Return each kernel with the reason for it or against it."""


class Variable(Protocol):
    """A variable on a device: a `modular_tf.Variable`."""

    device: Device

    def assign(self, value: Any) -> None:
        """Replace the value by a copy of an array."""

    def value(self) -> DeviceArray:
        """Return the value as it is now."""

    def close(self) -> None:
        """Release it when no call uses it any more."""


class Operations(Protocol):
    """Makes the operations of a service."""

    def on_device(self, device: Device, name: str, label: str = "") -> Any:
        """Return an `Operation` on a device."""

    def variable(self, device: Device, dtype: Any) -> Any:
        """Return a new variable on a device."""


class WithOperations:
    """What a device offers of operations.

    Attributes:
        operations: Who makes operations on it; None where nobody does.
    """

    __slots__ = ()
    operations: Operations | None

    def op(self, name: str, label: str = "") -> Operation:
        """Return an operation that kernels of plugins compute on this device.

        Look it up once and call it often: `matmul = device.op("MatMul")`, then
        `matmul(a, b, transpose_a=True)`. Its `signature` and repr say what it takes.

        Args:
            name: Of the operation, as in TensorFlow.
            label: Asks for kernels that were registered with this label.

        Raises:
            NotFoundError: Nobody defines it (rule KN-040).
            UnimplementedError: The device belongs to no service.
            ClosedError: The service is closed.
        """
        operation: Operation = self._maker().on_device(cast("Device", self), name, label)
        return operation

    def run(
        self,
        name: str,
        *inputs: Any,
        attrs: Mapping[str, Any] | None = None,
        label: str = "",
        **options: Any,
    ) -> Any:
        """Compute an operation once; attributes are apart, whatever the names of the inputs.

        Args:
            name: As in `op`.
            inputs: In the order of the definition.
            attrs: By name.
            label: As in `op`.
            options: `donate` and `stream`, as in a call of `modular_tf.kernel.op.Op`.

        Raises:
            ModularTFError: As `op`, and as a call.
        """
        return self.op(name, label).run(inputs, attrs or {}, **options)

    def variable(self, dtype: Any) -> Variable:
        """Return a variable on this device: a tensor that kernels change in place.

        Args:
            dtype: Of its elements, as in `empty`.

        Raises:
            UnimplementedError: The device belongs to no service.
            ClosedError: The service is closed.
        """
        made: Variable = self._maker().variable(cast("Device", self), dtype)
        return made

    def _maker(self) -> Operations:
        if self.operations is None:
            raise UnimplementedError(f"{self}: operations need a device of a plugin service")
        return self.operations
