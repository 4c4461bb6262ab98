"""Kernel objects, ready to compute: one for each node, kernel and device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.device.native_object import call_and_own
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.native_node import native_node
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import take_error
from modular_tf.rules import Violation
from modular_tf.rules.kernel import COMPUTATION_RETURNS, HOST_ARGUMENT_EXISTS

if TYPE_CHECKING:
    from modular_tf.errors import ModularTFError
    from modular_tf.kernel.node import Node
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.site import KernelSite

__all__ = ["PreparedKernel"]


class PreparedKernel:
    """A kernel object of a plugin's, made for one node on one device. [any thread]

    Several threads may have it compute at once. Its end calls the plugin's `delete`, when no call
    of it is under way any more.
    """

    __slots__ = ("__weakref__", "host_inputs", "native", "node", "registration", "site")

    def __init__(
        self,
        registration: KernelRegistration,
        node: Node,
        definition: OpDefinition,
        site: KernelSite,
    ) -> None:
        """Have the plugin make a kernel object.

        Raises:
            ModularTFError: It says that it cannot, with its own code (rule KN-060).
            InvalidArgumentError: It wants an argument in host memory that there is not (KN-014).
            ClosedError: The device was closed.
        """
        self.registration = registration
        self.node = node
        self.site = site
        host_args = _checked_host_args(registration, node)
        # for each tensor that goes in, whether it has to be in host memory
        self.host_inputs = tuple(
            not kind.is_plain or _name_of(node, index) in host_args
            for index, kind in enumerate(node.input_types)
        )
        made = native_node(node, definition, host_args)
        subject = f"{node.op} on {site.device.name}".encode()
        arguments = registration.native, made, site.native, named(registration.plugin), subject
        ffi.gc(made, None)  # the kernel takes it over, also on failure
        self.native: Any = call_and_own(lib.mtf_kernel_new, arguments, lib.mtf_kernel_free)
        if not self.native:
            raise self.failure(lib.mtf_take_error(), "create")

    def failure(self, error: Any, operation: str) -> ModularTFError:
        """Return a native error as an exception that names operation, kernel and plugin."""
        name = self.registration.name or self.registration.op
        subject = f"{self.node.op}: {operation} of kernel {name!r} on {self.site.device.name}"
        is_thrown = bool(error) and bool(error.thrown)
        failed = take_error(error, plugin=self.registration.plugin, operation=subject)
        failed.operation = self.node.op
        if is_thrown:
            failed.rule = COMPUTATION_RETURNS.id
        return failed

    def raise_failure(self) -> NoReturn:
        """Raise the error of a call that has just failed on this thread."""
        raise self.failure(lib.mtf_take_error(), "compute")


def _checked_host_args(registration: KernelRegistration, node: Node) -> frozenset[str]:
    """Return the arguments that a kernel wants in host memory.

    Raises InvalidArgumentError if the operation lacks one of them (rule KN-014).
    """
    names = (*node.input_ranges, *node.output_ranges)
    unknown = [name for name in registration.host_args if name not in names]
    if unknown:
        text = f"{node.op}: {registration.who} wants {unknown[0]!r} in host memory"
        raise Violation(HOST_ARGUMENT_EXISTS, f"{text}; arguments are {', '.join(names)}").error(
            InvalidArgumentError, plugin=registration.plugin, operation=node.op
        )
    return frozenset(registration.host_args)


def _name_of(node: Node, index: int) -> str:
    return next(name for name, where in node.input_ranges.items() if index in where)
