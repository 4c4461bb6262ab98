"""Variables: tensors of a device that kernels change in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.data_types import DataType, data_type
from modular_tf.device.device import DeviceArray
from modular_tf.device.device_core import call_and_own, usable
from modular_tf.errors import ClosedError, InvalidArgumentError, UnimplementedError
from modular_tf.kernel.outputs import take_outputs
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import take_error

if TYPE_CHECKING:
    from modular_tf.kernel.site import KernelSite

__all__ = ["Variable"]


class Variable:
    """A tensor that outlives calls, for operations with resource or reference inputs. [any thread]

    `Device.variable` makes them, and the end of the service closes them. Pass it where an operation
    takes a resource, such as `AssignAddVariableOp`, or a reference, such as `Assign`. Kernels
    change it one at a time, and only memory that nobody else sees: arrays that `value` gave stay as
    they are.

    Attributes:
        device: Where its memory is.
        type: Of its elements.
    """

    def __init__(self, site: KernelSite, dtype: Any) -> None:
        """Make a variable without a value."""
        self.device = site.device
        self.type: DataType = data_type(dtype)
        self._site = site
        self.native: Any = call_and_own(
            lib.mtf_kernel_variable_new, (), lib.mtf_kernel_variable_free
        )
        if not self.native:
            raise take_error(lib.mtf_take_error(), operation="a variable")
        site.variables.add(self)

    def assign(self, value: Any) -> None:
        """Replace the value by a copy of an array, of any shape.

        Raises:
            InvalidArgumentError: It has another element type.
            ClosedError: The variable, or its device, was closed.
            AbortedError: A kernel whose call was interrupted has kept it locked for 5 seconds.
            ModularTFError: The copy failed.
        """
        native = self.open_native()
        array = self.device.put(value)
        if array.dlpack_dtype != self.type.dlpack:
            raise InvalidArgumentError(
                f"a variable of {self.type} cannot be assigned elements of {array.dtype}"
            )
        memory, dims = array.device_memory, ffi.new("int64_t[]", array.shape)
        shape = self.type.number, dims, len(array.shape)
        taken = ffi.NULL
        if array.nbytes and memory is not None:
            taken = usable(memory)
            ffi.gc(taken, None)  # the variable takes it over
        error = lib.mtf_kernel_variable_set(native, self._site.native, taken, *shape)
        if error:
            raise take_error(error, operation="assign of a variable")

    def value(self) -> DeviceArray:
        """Return the value as it is now; no later change of the variable is seen in the array.

        Raises:
            FailedPreconditionError: It has none yet.
            AbortedError: As `assign`.
            ClosedError: The variable, or its device, was closed.
        """
        arguments = self.open_native(), self._site.native
        result = call_and_own(lib.mtf_kernel_variable_read, arguments, lib.mtf_kernel_result_free)
        if not result:
            raise take_error(lib.mtf_take_error(), operation="value of a variable")
        value = take_outputs(result, 1, self._site)[0]
        if not isinstance(value, DeviceArray):
            raise UnimplementedError(f"a variable of {self.type} has a value that is no array")
        with value as shared:
            return shared.copy_to(self.device)

    def open_native(self) -> Any:
        """Return the native part, for calls; raises ClosedError where it was closed."""
        if self.native is None:
            raise ClosedError("the variable was closed")
        return self.native

    def close(self) -> None:
        """Release it when no call uses it any more. Safe to call twice."""
        self.native = None
