"""What a plugin's library has registered, as the registry of kernels takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.data_types import by_number
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.canonical_line import read_op_definition
from modular_tf.kernel.registration import KernelRegistration
from modular_tf.kernel.registry import PluginKernels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.loading.kernel_loader import KernelOffer, NativeKernel

__all__ = ["plugin_kernels"]


def plugin_kernels(offer: KernelOffer, plugin: str) -> PluginKernels | None:
    """Return the kernels and definitions that a plugin's library registered; None for nothing."""
    if not offer.kernels and not offer.op_definitions:
        return None
    kernels = tuple(_registration(kernel, plugin) for kernel in offer.kernels)
    return PluginKernels(plugin, kernels, tuple(_definitions(offer, plugin)))


def _registration(kernel: NativeKernel, plugin: str) -> KernelRegistration:
    return KernelRegistration(
        op=kernel.op,
        device_type=kernel.device_type,
        name=kernel.name,
        constraint_pairs=tuple((name, by_number(kind)) for name, kind in kernel.constraints),
        host_args=kernel.host_args,
        label=kernel.label,
        priority=kernel.priority,
        asynchronous=kernel.asynchronous,
        plugin=plugin,
        native=kernel.native,
    )


def _definitions(offer: KernelOffer, plugin: str) -> Iterator[OpDefinition]:
    for line in offer.op_definitions:
        try:
            yield read_op_definition(line, plugin)
        except InvalidArgumentError:  # the host runtime has accepted it, so it is of its making
            continue
