"""The library of a kernel plugin, whose TF_InitKernel is called when a check needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.device.raw_platform import read_tables
from modular_tf.check.session import LibrarySession, blocked_by
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.kernel.registry import KernelRegistry, plugin_kernels
from modular_tf.loading.device_loader import ENTRY_POINT
from modular_tf.loading.kernel_loader import KERNEL_INIT, init_kernels

if TYPE_CHECKING:
    from modular_tf.loading.kernel_loader import KernelOffer
    from modular_tf.native.library import Library
    from modular_tf.rules import Violation

_NAME = "plugin"


class KernelLibraryStage(LibrarySession):
    """A library, initialised once for all checks of one process."""

    @computed_once
    def offer(self) -> KernelOffer:
        """What the library registers.

        Raises:
            Blocked: It cannot be mapped.
        """
        with blocked_by():
            library = self.map()
        self._init_devices(library)
        call = f"{KERNEL_INIT}()"
        self.journal.enter(call)
        offer = init_kernels(library, plugin=_NAME)
        self.journal.leave(call, f"{len(offer.kernels)} kernels")
        return offer

    def _init_devices(self, library: Library) -> None:
        """Initialise the devices of the same library, which come before its kernels."""
        if library.symbol(ENTRY_POINT) is not None:
            read_tables(library, self.journal)

    @computed_once
    def violations(self) -> tuple[Violation, ...]:
        """What a host finds wrong with that."""
        kernels = plugin_kernels(self.offer, _NAME)
        entered = () if kernels is None else KernelRegistry().enter(kernels)
        return (*self.offer.violations, *entered)
